"""Changes that make a valid profile invalid by construction, and changes that do not.

Each mutator takes a seeded generator and a fresh copy of a valid profile's values, picks a random place, and returns the
text, the overrides, and what a message must name: a key (or a part of it), or None where the text
has no keys any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import yaml
from annotated_types import Ge, Le

from scaletest.profile.parameters import substitute
from scaletest.profile.places import Path, dotted, leaves
from scaletest.profile.structure import Shape, key_of, shape_at
from tests.profile.samples import FULL, full_data

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """An invalid profile, or a valid one with invalid overrides, and the key that its message must name."""

    text: str | bytes
    key: str | None
    overrides: tuple[str, ...] = ()


def at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def put(data: Any, path: Path, value: Any) -> None:
    at(data, path[:-1])[path[-1]] = value


def dumped(data: Values) -> str:
    return yaml.safe_dump(data, sort_keys=False, width=10_000)


def plain_data() -> Values:
    """Values of FULL with its parameters filled in, so that any leaf may be changed on its own."""
    data = full_data()
    filled = substitute(data, data.pop("parameters")).data
    assert isinstance(filled, dict)
    return filled


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yield every place of a profile's values with its shape."""
    shape = shape_at(path)
    if shape is not None:
        yield path, shape
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def pick(rng: Random, data: Values, wanted: Callable[[Path, Shape, Any], bool]) -> tuple[Path, Shape]:
    found = [(path, shape) for path, shape in places(data) if path and wanted(path, shape, at(data, path))]
    return rng.choice(found)


def misspelt(rng: Random, word: str) -> str:
    index = rng.randrange(len(word))
    letter = rng.choice("qxz")
    return rng.choice([word[:index] + letter + word[index:], word[:index] + letter + word[index + 1 :], word + letter])


def unknown_key(rng: Random) -> Mutation:
    data = plain_data()
    models = [path for path, shape in places(data) if shape.model is not None and isinstance(at(data, path), dict)]
    path = rng.choice(models)
    shape = shape_at(path)
    assert shape is not None
    key = misspelt(rng, rng.choice(shape.keys))
    at(data, path)[key] = rng.choice([1, "x", [1], {"a": 1}, None])
    return Mutation(dumped(data), dotted((*path, key)))


UNITS = ("duration", "size", "rate")


def has_unit(_path: Path, shape: Shape, _value: Any) -> bool:
    return shape.form is not None and shape.form.startswith(UNITS)


def wrong_unit(rng: Random) -> Mutation:
    data = plain_data()
    path, _ = pick(rng, data, has_unit)
    number = rng.choice(["5", "1.5", "20", ".5"])
    wrong = ["x", " parsecs", "ss", "", "S", "%", "Hz", "/d", "/", "KBit", "GiBs", "-", "e3s", "_", "s s"]
    put(data, path, rng.choice([number + rng.choice(wrong), "-" + number + "s", 5, 0.5, "s", "/s", "", "five s"]))
    return Mutation(dumped(data), dotted(path))


def wrong_type(rng: Random) -> Mutation:
    data = plain_data()
    path, shape = pick(rng, data, lambda _path, _shape, _value: True)
    if shape.kind in {"model", "map"}:
        value = rng.choice([5, 0.5, True, [], ["a"], "text"])
        if isinstance(at(data, path), str):
            value = rng.choice([5, True, []])
    elif shape.kind == "list":
        value = rng.choice([5, True, {}, {"a": 1}, "text", None])
    elif bool in shape.scalars and len(shape.scalars) == 1:
        value = rng.choice([0, 1, "yes", "true", [], {}])
    elif shape.scalars <= {int, float}:
        value = rng.choice(["5", "many", True, [1], {"a": 1}, "1e3"])
    else:
        value = rng.choice([[1], {"a": 1}, ["x"], 0.5])
    put(data, path, value)
    return Mutation(dumped(data), dotted(path))


def missing_key(rng: Random) -> Mutation:
    data = plain_data()
    required = [
        (*path, key_of(name, info))
        for path, shape in places(data)
        if shape.model is not None and isinstance(at(data, path), dict)
        for name, info in shape.model.model_fields.items()
        if info.is_required()
    ]
    path = rng.choice(required)
    del at(data, path[:-1])[path[-1]]
    return Mutation(dumped(data), dotted(path))


def bad_reference(rng: Random) -> Mutation:
    data = plain_data()
    name = rng.choice(["nobody", "agentz", "gup", "x"])
    path, value = rng.choice(
        [
            (("phases", 1, "start", 0), name),
            (("phases", 2, "stop", 0), name),
            (("phases", 3, "stop", 0), name),
            (("phases", 2, "do", 0, "grow", "pool"), name),
            (("phases", 2, "do", 1, "shrink", "pool"), name),
            (("phases", 1, "until"), f"flow.{name}.started >= 1"),
            (("phases", 1, "until"), f"probe.{name}.p99 < 1s"),
            (("slo", "operator"), f"component.{name}.memory < 1GiB"),
            (("objectives", 0), f"probe.operator[{name}].p99 < 1s"),
            (("objectives", 1), f"flow.agents.{name}.p99 < 1s"),
            (("objectives", 2), f"flow.{name}.error_rate < 1%"),
            (("objectives", 3, "check"), f"probe.{name}.p99 < 1s"),
            (("objectives", 4), f"component.{name}.restarts == 0"),
            (("objectives", 5), "probe.operator.ready >= 1"),
            (("flows", "agents", "identity"), name),
            (("flows", "singles", "identity"), f"serviceAccount:{name}"),
            (("probes", "operator", "identities", 1), name),
            (("flows", "agents", "steps", 0, "list"), name),
        ]
    )
    assert isinstance(value, str)
    put(data, path, value)
    # A wrong resource is a mistake of its step, a wrong identity one of its list.
    return Mutation(
        dumped(data), dotted(path[:-1] if path[-1] in {"list", 1} and path[0] in {"flows", "probes"} else path)
    )


def bad_objective(rng: Random) -> Mutation:
    data = plain_data()
    path: Path = rng.choice(
        [("objectives", rng.randrange(3)), ("slo", "operator"), ("phases", 1, "until"), ("objectives", 3, "check")]
    )
    good = at(data, path)
    subject, operator, threshold = good.split(" ")
    scope, rest = subject.split(".", 1)
    put(
        data,
        path,
        rng.choice(
            [
                subject,
                f"{subject} {operator}",
                f"{operator} {threshold}",
                f"{subject} {rng.choice(['=<', '~', 'is', '=', '<>', '<<'])} {threshold}",
                f"{subject} {operator} {threshold}x",
                f"{subject} {operator} {rng.choice(['soon', '-1', '1e3', 'nan', 'inf', '5 s s', '1/2'])}",
                f"{misspelt(rng, scope)}.{rest} {operator} {threshold}",
                f"{subject.rsplit('.', 1)[0]}.{misspelt(rng, subject.rsplit('.', 1)[1])} {operator} {threshold}",
                f"{scope} {operator} {threshold}",
                "",
                "p99",
            ]
        ),
    )
    return Mutation(dumped(data), dotted(path))


def yaml_syntax(rng: Random) -> Mutation:
    lines = FULL.splitlines()
    top = [index for index, line in enumerate(lines) if re.match(r"[a-z]", line)]
    index = rng.choice(top[1:])
    broken = rng.choice(
        ["\tkey: value", "key: [1, 2", "key: {a: 1", 'key: "open', "key: 'open", "key: a: b", "key: @x", "key: `x", "key: *none",
         "- item", "just text", "key: %x", 'key: "\\q"', "key: ]", "key: }", "  indented: 1", "key: &a &b x", "key: \x07", "? [",
         "key: 'x' y", 'key: "x" y', "--- key: 1\n---", "key: [a, b}", "key: {a: 1]", "key: !<x", "key: |9x"]
    )  # fmt: skip
    return Mutation("\n".join([*lines[:index], broken, *lines[index:]]) + "\n", None)


def duplicate_key(rng: Random) -> Mutation:
    data = plain_data()
    lines = dumped(data).splitlines()
    single = [index for index, line in enumerate(lines) if re.fullmatch(r" *[A-Za-z0-9/.-]+: \S.*", line)]
    index = rng.choice(single)
    line = lines[index]
    again = line if rng.random() < 0.5 else line.split(":")[0] + ": other"
    return Mutation("\n".join([*lines[: index + 1], again, *lines[index + 1 :]]) + "\n", line.split(":")[0].strip())


def settable(data: Values) -> list[Path]:
    return [path for path, _ in leaves(data) if path[0] != "parameters" and shape_at(path) is not None]


def set_unknown_key(rng: Random) -> Mutation:
    path = [*rng.choice([path for path in settable(full_data()) if not any("." in str(part) for part in path)])]
    fixed = [
        index
        for index in range(len(path))
        if not ((shape := shape_at(tuple(path[:index]))) is not None and shape.holds_scalars)
    ]
    index = rng.choice(fixed)
    path[index] = 99 if isinstance(path[index], int) else misspelt(rng, str(path[index]))
    return Mutation(FULL, dotted(tuple(path)), (f"{dotted(tuple(path))}=1",))


def set_wrong_value(rng: Random) -> Mutation:
    data = full_data()
    path = rng.choice(
        [
            path
            for path in settable(data)
            if (isinstance((shape := shape_at(path)), Shape) and shape.scalars and str not in shape.scalars)
            or has_unit(path, shape_at(path) or Shape("scalar"), None)
        ]
    )
    value = rng.choice(["many", "[1, 2]", "{a: 1}", "5 parsecs", "'5'", "-1x", '"true"', "1e3"])
    return Mutation(FULL, dotted(path), (f"{dotted(path)}={value}",))


def set_wrong_parameter(rng: Random) -> Mutation:
    name, values = rng.choice(
        [
            ("nodes", ["many", "1.5", "true", "'5'", "[1]", "{a: 1}", "null", "1e3", "-1", "100001"]),
            ("rollout", ["80", "fast", "[1]", "0/s", "-1/s", "80/d", "5s"]),
            ("kubernetes", ["latest", "1", "1.x", "v", "[1]", "1.2.3.4"]),
            ("share", ["half", "true", "[1]", "-1", "0.0", "9999"]),
            ("gzip", ["1", "yes", "on", "'true'", "[]"]),
            ("ndoes", ["5"]),
            ("parameters.new", ["5"]),
        ]
    )
    return Mutation(FULL, name, (f"{name}={rng.choice(values)}",))


def set_malformed(rng: Random) -> Mutation:
    key = dotted(rng.choice(settable(full_data())))
    text, named = rng.choice(
        [(key, key), (f"{key}=", key), (f"{key}==", key), (f"={key}", "="), (f".{key}=1", f".{key}"), (f"{key}.=1", f"{key}."),
         (f"{key}=[1", key), (f"{key}={{a: 1", key), (f"{key}='open", key), (f'{key}="\\q"', key), (f"{key} 5", key), (f"--{key}=5", key)]
    )  # fmt: skip
    return Mutation(FULL, named, (text,))


def out_of_range(rng: Random) -> Mutation:
    data = plain_data()
    bounded = []
    for path, shape in places(data):
        if shape.model is None or not isinstance(at(data, path), dict):
            continue
        for name, info in shape.model.model_fields.items():
            key = key_of(name, info)
            for bound in info.metadata:
                if key in at(data, path) and isinstance(bound, Ge | Le):
                    limit: Any = bound.ge if isinstance(bound, Ge) else bound.le
                    step = rng.choice([1, 2, 1000])
                    bounded.append(((*path, key), limit - step if isinstance(bound, Ge) else limit + step))
    special: list[tuple[Path, Any]] = [
        (("flows", "agents", "steps", 0, "jitter"), "101%"),
        (("flows", "agents", "steps", 0, "every"), "0s"),
        (("flows", "singles", "agents", "rollout"), "0/m"),
        (("probes", "operator", "timeout"), "0ms"),
        (("controlPlane", "limits", "etcd", "memory"), "15MiB"),
        (("fleet", "pools", 0, "podSize"), "1MB"),
        (("fleet", "secrets", "size"), "2MB"),
        (("observe", "metricsEvery"), 0),
        (("phases", 1, "atMost"), "0s"),
        (("phases", 0, "for"), "999999999999999999h"),
        (("name",), "x" * 43),
    ]
    path, value = rng.choice([*bounded, *special])
    put(data, path, value)
    return Mutation(dumped(data), dotted(path))


def conflicting_keys(rng: Random) -> Mutation:
    data = plain_data()
    path, extra = rng.choice(
        [
            (("phases", 0), {"until": "host.cpu_idle > 1%", "atMost": "5s"}),
            (("phases", 0), {"atMost": "5s"}),
            (("phases", 1), {"for": "5s"}),
            (("flows", "agents", "agents"), {"count": 5}),
            (("flows", "singles", "agents"), {"perNode": 1}),
            (("flows", "agents"), {"locustfile": {"path": "x", "users": 1, "spawn": "1/s"}}),
            (("flows", "agents", "steps", 0), {"watch": "pods"}),
            (("flows", "agents", "steps", 0), {"name": "x"}),
            (("flows", "agents", "steps", 1), {"get": "pods"}),
            (("flows", "agents", "steps", 3), {"every": "5s"}),
            (("flows", "agents", "steps", 3), {"limit": 5}),
            (("flows", "agents", "steps", 4), {"namespace": "x"}),
            (("probes", "operator"), {"nodeReadiness": True}),
            (("probes", "ready"), {"get": "pods"}),
            (("probes", "ready"), {"namespace": "x"}),
            (("phases", 2, "do", 0), {"shrink": {"pool": "gpu", "by": 1}}),
            (("objectives", 3), {"abort": False}),
            (("flows", "agents", "onError"), {"first": "21s"}),
        ]
    )
    at(data, path).update(extra)
    return Mutation(dumped(data), dotted(path))


def bad_parameter(rng: Random) -> Mutation:
    data = full_data()
    texts = [
        path
        for path, value in leaves(data)
        if isinstance(value, str) and path[0] != "parameters" and shape_at(path) is not None
    ]
    path = rng.choice(texts)
    value = at(data, path)
    kind = rng.randrange(3)
    if kind == 0:
        put(data, path, rng.choice([f"{value}{{ndoes}}", "{nodez}", "{x}", "a {Nodes} b"]))
    elif kind == 1:
        put(data, path, rng.choice([f"{value}{{", f"}}{value}", "{}", "{ nodes }", "{{nodes}", "{nodes", "{1}"]))
    else:
        name = rng.choice(["node", "name", "fleet", "a b", "1st", "phases"])
        data["parameters"][name] = 1
        path = ("parameters", name)
    return Mutation(dumped(data), dotted(path))


def wrong_word(rng: Random) -> Mutation:
    data = plain_data()
    path, _ = pick(
        rng, data, lambda _path, shape, value: shape.kind == "scalar" and bool(shape.choices) and isinstance(value, str)
    )
    if rng.random() < 0.4:
        path = rng.choice(
            [
                ("name",),
                ("fleet", "pools", 0, "name"),
                ("phases", 0, "name"),
                ("controlPlane", "etcd"),
                ("flows", "agents", "steps", 1, "label"),
            ]
        )
        put(data, path, rng.choice(["Upper Case", "a/b", "ä", " x", "x\n", "", "a.b/c"]))
    else:
        put(data, path, misspelt(rng, str(at(data, path))))
    return Mutation(dumped(data), dotted(path))


def no_mapping(rng: Random) -> Mutation:
    whole = FULL.encode()
    index = rng.randrange(len(whole))
    return Mutation(
        rng.choice(
            [b"", b"# nothing\n", b"- a\n- b\n", b"text\n", b"5\n", b"null\n", whole[:index] + b"\xff" + whole[index:],
             whole[:index] + b"\0" + whole[index:], FULL.encode("utf-16"), whole + b"#" * 300_000, b"[" * 3000, b"--- a\n--- b\n",
             bytes(rng.randrange(256) for _ in range(200)) + b"\0", json.dumps([plain_data()]).encode()]
        ),
        None,
    )  # fmt: skip


INVALID: dict[str, Callable[[Random], Mutation]] = {
    "unknown key": unknown_key,
    "wrong unit": wrong_unit,
    "wrong type": wrong_type,
    "missing key": missing_key,
    "bad reference": bad_reference,
    "bad objective": bad_objective,
    "YAML syntax": yaml_syntax,
    "duplicate key": duplicate_key,
    "--set of an unknown key": set_unknown_key,
    "--set of a wrong value": set_wrong_value,
    "--set of a wrong parameter value": set_wrong_parameter,
    "malformed --set": set_malformed,
    "out of range": out_of_range,
    "conflicting keys": conflicting_keys,
    "bad parameter": bad_parameter,
    "wrong word": wrong_word,
    "no mapping": no_mapping,
}
"""Mutators by class."""


def valid_change(rng: Random) -> tuple[str, tuple[str, ...]]:
    """Change a profile in several places so that it stays valid."""
    data = full_data()
    for _ in range(rng.randrange(1, 6)):
        rng.choice(_VALID)(rng, data)
    overrides = rng.sample(
        [f"nodes={rng.randrange(1, 500)}", f"rollout={rng.randrange(1, 99)}/m", "kubernetes=1.37", "share=2", "gzip=false",
         "controlPlane.limits.kube-scheduler.memory=1GiB", "fleet.pools.cpu.labels.zone=b", "flows.agents.steps.all.every=7s",
         "objectives.4.abort=true", f"flows.singles.agents.count={rng.randrange(1, 9)}", 'summary="{nodes} nodes, {{literal}}"'],
        rng.randrange(4),
    )  # fmt: skip
    return dumped(data), tuple(overrides)


def _shuffle_keys(rng: Random, data: Values) -> None:
    mappings = [
        path for path, shape in places(data) if isinstance(at(data, path), dict) and shape.kind in {"model", "map"}
    ]
    mapping = at(data, rng.choice(mappings))
    items = list(mapping.items())
    rng.shuffle(items)
    mapping.clear()
    mapping.update(items)


def _drop_default(rng: Random, data: Values) -> None:
    path = rng.choice(
        [("observe",), ("slo",), ("controlPlane", "args"), ("controlPlane", "env"), ("fleet", "services"), ("fleet", "secrets"),
         ("flows", "agents", "onError"), ("flows", "agents", "limit"), ("probes", "operator", "timeout")]
    )  # fmt: skip
    at(data, path[:-1]).pop(path[-1], None)


def _other_quantity(rng: Random, data: Values) -> None:
    path, shape = pick(
        rng,
        data,
        lambda path, shape, value: (
            has_unit(path, shape, value) and "{" not in str(value) and path[0] != "objectives" and "onError" not in path
        ),
    )
    form = shape.form or ""
    number = rng.choice([1, 2, 15, 17.25, 0.333, 59])
    if form.startswith("duration"):
        unit = rng.choice(["s", "ms", "m"])
        # A period is at least 10 ms.
        put(data, path, f"{number + 10 if unit == 'ms' else number}{unit}")
    elif form.startswith("rate"):
        put(data, path, f"{number}/{rng.choice('smh')}")
    elif "limits" in path:
        put(data, path, f"{number + 32}{rng.choice(['MiB', 'GiB', 'MB'])}")
    else:
        put(data, path, f"{number}{rng.choice(['B', 'KB', 'KiB'])}")


def _label(rng: Random, data: Values) -> None:
    data["fleet"]["pools"][0]["labels"][f"example.com/{rng.choice('abc')}"] = rng.choice(
        ["on", "1.30", "null", "x_y", ""]
    )


_VALID: list[Callable[[Random, Values], None]] = [_shuffle_keys, _drop_default, _other_quantity, _label]
