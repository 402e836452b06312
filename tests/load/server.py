"""A TLS server that answers by the path asked for: well, slowly, wrongly, not at all. Run as a script.

server.py CERT KEY CA      prints its port, serves until standard input ends

/ok?bytes=N        N bytes, with their length          /chunked?bytes=N    the same in chunks, with a trailer
/gzip              a gzip body                         /until-close        a body that ends with the connection
/list              a JSON list of version 42           /pages              the same in three pages, by `continue`
/expired           as /pages, the second page gone     /status/CODE        a Status with a reason
/retry?n=N         N times 429 with Retry-After: 0, then 200
/slow?s=S          a good answer after S               /silent             never an answer
/trickle?s=S       a byte every S seconds, for ever
/cut               half a body, then gone              /rst                closed without an answer
/garbage           not HTTP                            /hundred            100 and 103 before the answer
/drop              a good answer; the connection is closed when the next request comes
/close             a good answer with Connection: close
/watch             three events, then an end           /watch-gone         an ERROR event 410, unless at version 0
/watch-broken      one event, then gone                /protobuf-watch     two protobuf frames, then an end
/api/…/configmaps  objects as the API server keeps them: POST, and GET, PUT, PATCH and DELETE of one, DELETE of all
/api/…/pods        a watch that sends its initial events, and stays open; in the namespace `ended` it ends without them
/api…/scaletest-churn…  namespaces, Deployments, Jobs and pods of a churn flow: pods run at once, and a watch tells of them
/log               every request so far: path, peer, connection, headers
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOG: list[dict[str, Any]] = []
COUNTS: dict[str, int] = {}
OBJECTS: dict[str, bytes] = {}


def status(code: int, reason: str, message: str) -> bytes:
    return json.dumps(
        {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
    ).encode()


def head(code: int, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {code} Some Words", *headers, "", ""]).encode()


def with_length(code: int, body: bytes, *headers: str) -> bytes:
    return head(code, f"Content-Length: {len(body)}", *headers) + body


def chunked(body: bytes, size: int = 1000) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(f"{len(part):x};name=value\r\n".encode() + part + b"\r\n" for part in parts)
    return head(200, "Transfer-Encoding: chunked", "Trailer: X-Sum") + chunks + b"0\r\nX-Sum: 1\r\n\r\n"


def listing(*, next_page: str = "", items: int = 3) -> bytes:
    metadata = {"resourceVersion": "42"} | ({"continue": next_page} if next_page else {})
    return json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": [{"n": n} for n in range(items)]}
    ).encode()


def event(kind: str, version: int) -> bytes:
    return (
        json.dumps(
            {"type": kind, "object": {"kind": "Pod", "metadata": {"name": "x", "resourceVersion": str(version)}}}
        ).encode()
        + b"\n"
    )


class Request:
    """What was asked, and where the answer goes."""

    def __init__(
        self, method: str, path: str, query: dict[str, str], content: bytes, writer: asyncio.StreamWriter
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.content = content
        self.write = writer.write
        self.writer = writer
        self.body = b"x" * int(query.get("bytes", "100"))
        self.wait_s = float(query.get("s", "0"))


async def pages(request: Request) -> bool:
    page = request.query.get("continue", "")
    if request.path == "/expired" and page:
        return whole(request, 410, status(410, "Expired", "too old"))
    following = {"": "two/+", "two/+": "three", "three": ""}[page] if "limit" in request.query else ""
    return whole(request, 200, listing(next_page=following), "Content-Type: application/json")


async def failing(request: Request) -> bool:
    code = int(request.path.split("/")[2])
    return whole(
        request, code, status(code, "Forbidden", 'pods is forbidden: no "luck"'), "Content-Type: application/json"
    )


async def retry(request: Request) -> bool:
    COUNTS["retry"] = COUNTS.get("retry", 0) + 1
    if COUNTS["retry"] <= int(request.query["n"]):
        return whole(request, 429, b"Too many requests, please try again later.\n", "Retry-After: 0")
    return whole(request, 200, b"{}")


async def slow(request: Request) -> bool:
    await asyncio.sleep(request.wait_s)
    return whole(request, 200, request.body)


async def silent(_request: Request) -> bool:
    await asyncio.sleep(3600)
    return False


async def trickle(request: Request) -> bool:
    request.write(head(200, "Content-Length: 1000000"))
    while True:
        request.write(b"x")
        await request.writer.drain()
        await asyncio.sleep(request.wait_s)


async def watch(request: Request) -> bool:
    return await stream(request, [event("ADDED", 43), event("MODIFIED", 44), event("BOOKMARK", 45)])


async def watch_gone(request: Request) -> bool:
    if request.query.get("resourceVersion") == "0":
        return await stream(request, [event("ADDED", 90)], hold=True)
    gone = {"type": "ERROR", "object": {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}}
    return await stream(request, [json.dumps(gone).encode() + b"\n"])


async def watch_broken(request: Request) -> bool:
    data = event("ADDED", 77)
    request.write(head(200, "Transfer-Encoding: chunked") + f"{len(data):x}\r\n".encode() + data + b"\r\n")
    return False


async def protobuf_watch(request: Request) -> bool:
    frames = [b"\x0a\x05ADDED", b"\x0a\x08MODIFIED" * 50]
    data = [len(frame).to_bytes(4, "big") + frame for frame in frames]
    return await stream(request, data, kind="application/vnd.kubernetes.protobuf;stream=watch")


def whole(request: Request, code: int, body: bytes, *headers: str, kept: bool = True) -> bool:
    request.write(with_length(code, body, *headers))
    return kept


def raw(request: Request, data: bytes, *, kept: bool = False) -> bool:
    request.write(data)
    return kept


def stored(request: Request) -> bool:
    """Keep objects by path."""
    path, content = request.path, request.content
    match request.method:
        case "POST":
            path += "/" + json.loads(content)["metadata"]["name"]
            if path in OBJECTS:
                return whole(request, 409, status(409, "AlreadyExists", "already exists"))
            OBJECTS[path] = content
            return whole(request, 201, content)
        case "DELETE" if path.endswith("/configmaps"):
            for name in [name for name in OBJECTS if name.startswith(path)]:
                del OBJECTS[name]
            return whole(request, 200, b"{}")
    if path not in OBJECTS:
        return whole(request, 404, status(404, "NotFound", "not found"))
    if request.method == "DELETE":
        del OBJECTS[path]
    elif request.method == "PUT":
        OBJECTS[path] = content
    return whole(request, 200, OBJECTS.get(path, b"{}"))


async def initial_events(request: Request) -> bool:
    end = {"type": "BOOKMARK", "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}}
    return await stream(request, [event("ADDED", 1), event("ADDED", 2), json.dumps(end).encode() + b"\n"], hold=True)


class Workloads:
    """What controllers, scheduler and nodes would do with the objects of a churn flow. Pods of a flow called ``churn-late…`` never run."""

    def __init__(self) -> None:
        self.namespaces: set[str] = set()
        self.pods: dict[str, dict[str, Any]] = {}
        self.watches: list[tuple[str, asyncio.Queue[bytes]]] = []

    def asked(self, request: Request) -> bool:
        """Answer a write, or whether something is there."""
        parts = request.path.split("/")
        if request.path.endswith("/namespaces"):
            name = json.loads(request.content)["metadata"]["name"]
            if name.startswith("scaletest-churn-denied"):
                return whole(request, 403, status(403, "Forbidden", "no namespaces for you"))
            self.namespaces.add(name)
            return whole(request, 201, request.content)
        namespace = parts[parts.index("namespaces") + 1]
        if namespace not in self.namespaces:
            return whole(request, 404, status(404, "NotFound", "no such namespace"))
        match request.method:
            case "POST":
                made = json.loads(request.content)
                spec = made["spec"]
                count = spec.get("replicas", spec.get("completions", 1))
                self.scale(f"{request.path}/{made['metadata']['name']}/", made["metadata"]["labels"], count)
                return whole(request, 201, request.content)
            case "PATCH":
                owner = request.path.removesuffix("/scale") + "/"
                (labels, *_) = [pod["metadata"]["labels"] for uid, pod in self.pods.items() if uid.startswith(owner)]
                count = json.loads(request.content)["spec"].get("replicas")
                if count is None:
                    count = sum(uid.startswith(owner) for uid in self.pods)
                    self.scale(owner, labels, 0)
                self.scale(owner, labels, count)
            case "DELETE" if request.path.endswith(f"/namespaces/{namespace}"):
                self.namespaces.discard(namespace)
                for uid in [uid for uid in self.pods if f"/{namespace}/" in uid]:
                    self.tell("DELETED", self.pods.pop(uid))
            case "DELETE":
                self.scale(f"{request.path}/", {}, 0)
        return whole(request, 200, b"{}")

    def scale(self, owner: str, labels: dict[str, str], count: int) -> None:
        """Make or delete pods of an owner."""
        mine = [uid for uid in self.pods if uid.startswith(owner)]
        for uid in mine[count:]:
            self.tell("DELETED", self.pods.pop(uid))
        for _ in range(count - len(mine)):
            COUNTS["pods"] = COUNTS.get("pods", 0) + 1
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            metadata: dict[str, Any] = {
                "uid": f"{owner}{COUNTS['pods']}",
                "labels": labels,
                "creationTimestamp": created,
            }
            pod = self.pods[metadata["uid"]] = {"kind": "Pod", "metadata": metadata, "status": {}}
            self.tell("ADDED", pod)
            if labels["scaletest.dev/flow"].startswith("churn-late"):
                continue
            for condition in ("PodScheduled", "Ready"):
                pod["status"].setdefault("conditions", []).append({"type": condition, "status": "True"})
                self.tell("MODIFIED", pod)

    def tell(self, kind: str, pod: dict[str, Any]) -> None:
        """Send an event to the watches whose label selector it fits."""
        for selector, queue in self.watches:
            key, value = selector.split("=")
            if pod["metadata"]["labels"].get(key) == value:
                queue.put_nowait(json.dumps({"type": kind, "object": pod}).encode() + b"\n")

    async def watched(self, request: Request) -> bool:
        """Send events until the peer has gone."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.watches.append((request.query["labelSelector"], queue))
        request.write(head(200, "Transfer-Encoding: chunked", "Content-Type: application/json"))
        while True:
            data = await queue.get()
            request.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await request.writer.drain()


WORKLOADS = Workloads()

PLAIN: dict[str, Callable[[Request], bool]] = {
    "ok": lambda request: whole(request, 200, request.body),
    "drop": lambda request: whole(request, 200, request.body),
    "close": lambda request: whole(request, 200, request.body, "Connection: close", kept=False),
    "chunked": lambda request: raw(request, chunked(request.body), kept=True),
    "gzip": lambda request: whole(request, 200, gzip.compress(listing(items=500)), "Content-Encoding: gzip"),
    "until-close": lambda request: raw(request, head(200) + request.body),
    "list": lambda request: whole(request, 200, listing(), "Content-Type: application/json"),
    "cut": lambda request: raw(request, head(200, "Content-Length: 1000") + b"x" * 500),
    "rst": lambda request: raw(request, b""),
    "garbage": lambda request: raw(request, b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    "hundred": lambda request: raw(
        request, head(100) + head(103, "Link: </x>") + with_length(200, request.body), kept=True
    ),
    "log": lambda request: whole(request, 200, json.dumps(LOG).encode()),
}
SLOW: dict[str, Callable[[Request], Awaitable[bool]]] = {
    "pages": pages, "expired": pages, "status": failing, "retry": retry, "slow": slow, "silent": silent, "trickle": trickle,
    "watch": watch, "watch-gone": watch_gone, "watch-broken": watch_broken, "protobuf-watch": protobuf_watch,
}  # fmt: skip


async def answer(request: Request) -> bool:
    """Write the answer; whether the connection is kept."""
    if "scaletest.dev/churn" in request.query.get("labelSelector", ""):
        return await WORKLOADS.watched(request)
    if request.path.endswith("/namespaces") or "/namespaces/scaletest-churn" in request.path:
        return WORKLOADS.asked(request)
    return await answer_by_name(request)


async def answer_by_name(request: Request) -> bool:
    """Write the answer that the first part of the path asks for; whether the connection is kept."""
    name = request.path.split("/")[1]
    if name == "api" and not request.path.endswith("/secrets"):
        is_watch = request.path.endswith("/pods") and "watch" in request.query
        if is_watch and "/namespaces/ended/" in request.path:
            return await watch(request)
        return await initial_events(request) if is_watch else stored(request)
    if name in PLAIN:
        return PLAIN[name](request)
    if name in SLOW:
        return await SLOW[name](request)
    return whole(request, 404, status(404, "NotFound", "not found"))


async def stream(request: Request, events: list[bytes], *, hold: bool = False, kind: str = "application/json") -> bool:
    request.write(head(200, "Transfer-Encoding: chunked", f"Content-Type: {kind}"))
    for data in events:
        request.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await request.writer.drain()
    await asyncio.sleep(3600 if hold else 0.3)
    return raw(request, b"0\r\n\r\n", kept=True)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = COUNTS["connections"] = COUNTS.get("connections", 0) + 1
    closes_next = False
    try:
        while True:
            asked = await reader.readuntil(b"\r\n\r\n")
            if closes_next:
                return
            line, *headers = asked.decode().split("\r\n")
            method, target, _ = line.split(" ")
            lengths = [int(item.split(": ")[1]) for item in headers if item.startswith("Content-Length: ")]
            content = await reader.readexactly(lengths[0]) if lengths else b""
            parts = urlsplit(target)
            query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
            if parts.path != "/log":
                peer = writer.get_extra_info("peername")
                certificate = writer.get_extra_info("peercert")
                subject = [value for rdn in (certificate or {}).get("subject", ()) for _, value in rdn]
                LOG.append(
                    {
                        "time_s": time.monotonic(),
                        "method": method,
                        "target": target,
                        "content": content.decode("latin-1"),
                        "path": parts.path,
                        "query": query,
                        "headers": headers,
                        "peer": peer[0],
                        "connection": connection,
                        "subject": subject,
                    }
                )
            closes_next = parts.path == "/drop"
            if not await answer(Request(method, parts.path, query, content, writer)):
                return
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    cert, key, ca = sys.argv[1:4]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
