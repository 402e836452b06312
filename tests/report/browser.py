"""A headless Chromium with the network off, spoken to through its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

_SWITCHES = (
    "--headless=new", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu", "--disable-extensions", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),
)  # fmt: skip


class Tab:
    """One page: commands, and what the page did wrong."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._next = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        """Errors and warnings of the console, and exceptions that nothing caught."""
        self.requests: list[str] = []
        """Addresses that the page asked for, the page itself among them."""
        self.loaded = asyncio.Event()

    async def listen(self) -> None:
        async for message in self._socket:
            data = message.json()
            if "id" in data:
                self._waiting.pop(data["id"]).set_result(data)
            else:
                self._note(data["method"], data["params"])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self.loaded.set()
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled":
                said = " ".join(str(item.get("value", item.get("description"))) for item in params["args"])
                self.complaints.append(f"console.{params['type']}: {said}")
            case "Log.entryAdded":
                self.complaints.append(f"{params['entry']['level']}: {params['entry']['text']}")

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = answer
        await self._socket.send_json({"id": self._next, "method": method, "params": params})
        data = await asyncio.wait_for(answer, 60)
        if "error" in data:
            msg = f"{method}: {data['error']}"
            raise RuntimeError(msg)
        result: dict[str, Any] = data["result"]
        return result

    async def evaluate(self, expression: str) -> Any:
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def open(self, url: str, *, width: int, height: int = 900, dark: bool = False, touch: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch
        )
        self.loaded.clear()
        await self.send("Page.navigate", url=url)
        await asyncio.wait_for(self.loaded.wait(), 60)
        await self.settle()

    async def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        await self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    async def screenshot(self, *, whole: bool = True) -> bytes:
        """Return a picture (PNG) of what is seen, or of the whole page."""
        data = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(data["data"])

    async def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    async def key(self, name: str) -> None:
        text = {"text": name} if len(name) == 1 else {}
        await self.send("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        await self.send("Input.dispatchKeyEvent", type="keyUp", key=name)


@contextlib.asynccontextmanager
async def browser(program: str, switches: Iterable[str] = ()) -> AsyncIterator[Tab]:
    """Start Chromium without network, and give its one tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = await asyncio.create_subprocess_exec(
            program, *_SWITCHES, *switches, f"--user-data-dir={home}", "about:blank",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            port = await _port(Path(home) / "DevToolsActivePort")
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(await _address(session, port), max_msg_size=0) as socket,
            ):
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await tab.send(f"{domain}.enable")
                offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
                await tab.send("Network.emulateNetworkConditions", **offline)
                yield tab
                with contextlib.suppress(RuntimeError, TimeoutError, ConnectionError):
                    await tab.send("Browser.close")
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _port(path: Path) -> int:
    for _ in range(600):
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((await asyncio.to_thread(path.read_text, encoding="ascii")).splitlines()[0])
        await asyncio.sleep(0.05)
    msg = "Chromium did not start"
    raise RuntimeError(msg)


async def _address(session: aiohttp.ClientSession, port: int) -> str:
    for _ in range(200):
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            pages = [item for item in await answer.json(content_type=None) if item["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"])
        await asyncio.sleep(0.05)
    msg = "Chromium has no page"
    raise RuntimeError(msg)
