"""Settings: their layers, their types, and what is said of a mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scaletest.controlplane.binaries.versions import COMPONENTS, FAMILIES, component_named
from scaletest.core.errors import UsageError
from scaletest.core.project import Project
from scaletest.core.settings import SETTINGS, Settings, resolve_settings
from scaletest.core.tomlplaces import TomlFile


def resolve(
    root: Path, *, project: str | None = None, user: str | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    for name, text in (("pyproject.toml", project), ("config.toml", user)):
        if text is not None:
            (root / name).write_text(text, encoding="utf-8")
    return resolve_settings(environ or {}, Project(root), root / "config.toml")


def test_each_place_goes_over_the_weaker_ones_and_is_named(tmp_path: Path) -> None:
    user = 'kubernetes = "1.31"\netcd = "3.5"\ncolor = "never"\nrepeat = 4\n'
    project = '[project]\nname = "x"\n\n[tool.scaletest]\n# of production\nkubernetes = "1.33"\netcd = "3.6"\ncolor = "auto"\n'
    environ = {"SCALETEST_KUBERNETES": "1.36", "SCALETEST_COLOR": "", "SCALETEST_ETCD": "3.6.16"}
    found = resolve(tmp_path, user=user, project=project, environ=environ).with_flag("etcd", "3.4", "--etcd")

    assert ("1.36", "SCALETEST_KUBERNETES") == (found["kubernetes"], found.origin("kubernetes"))
    assert ("3.4", "--etcd") == (found["etcd"], found.origin("etcd"))
    assert ("auto", f"{tmp_path}/pyproject.toml:8") == (found["color"], found.origin("color"))
    assert (4, f"{tmp_path}/config.toml:4") == (found["repeat"], found.origin("repeat"))
    assert (None, "default") == (found["results"], found.origin("results"))


@pytest.mark.parametrize(
    ("key", "toml", "text", "value"),
    [
        ("fail", '["p99:10%", "memory:15%"]', "p99:10%, memory:15%", ("p99:10%", "memory:15%")),
        ("repeat", "12", "12", 12),
        ("kubernetes", '"v1.38.0-rc.1"', "v1.38.0-rc.1", "v1.38.0-rc.1"),
        ("verbosity", '"quiet"', "quiet", "quiet"),
        ("results", '"/srv/runs"', "/srv/runs", Path("/srv/runs")),
        ("mirror.etcd", '"https://mirror/etcd"', "https://mirror/etcd", "https://mirror/etcd"),
        ("binary.kube-apiserver", '"/opt/ka"', "/opt/ka", Path("/opt/ka")),
    ],
)
def test_every_type_is_read_from_files_and_from_the_environment(
    key: str, toml: str, text: str, value: Any, tmp_path: Path
) -> None:
    assert value == resolve(tmp_path, user=f"{key} = {toml}\n")[key]
    assert value == resolve(tmp_path, environ={SETTINGS[key].variable: text})[key]


def test_a_path_in_a_file_is_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = '[tool.scaletest]\nresults = "runs"\nbinary.etcd = "~/etcd"\n'
    (tmp_path / "below").mkdir()
    monkeypatch.setenv("HOME", "/home/me")

    monkeypatch.chdir(tmp_path / "below")
    assert tmp_path / "runs" == resolve(tmp_path, project=project)["results"]
    monkeypatch.chdir(tmp_path)
    found = resolve(tmp_path, project=project)
    assert (Path("runs"), Path("/home/me/etcd")) == (found["results"], found["binary.etcd"])


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("fial = []", "pyproject.toml:2: tool.scaletest.fial: no such setting", "Did you mean fail? There are: results, "),
        ("cache_dir = '/x'", "tool.scaletest.cache_dir: no such setting", "Did you mean cache-dir?"),
        ("\nbinary.etdc = '/x'", "pyproject.toml:3: tool.scaletest.binary.etdc: no such setting", "binary.etcd"),
        ("[tool.scaletest.mirror]\nfoo = 1", "pyproject.toml:3: tool.scaletest.mirror.foo: no such setting", ""),
        ("fail = 'p99:10%'", 'pyproject.toml:2: tool.scaletest.fail: not a list of texts: write ["p99:10%"]', ""),
        ("kubernetes = 1.37", "tool.scaletest.kubernetes: 1.37 is no version: write it in quotes", ""),
        ("kubernetes = '37'", "tool.scaletest.kubernetes: '37' is no version: write 1.37 or 1.37.2", ""),
        ("repeat = 31", "tool.scaletest.repeat: 31 is no whole number from 1 to 30", ""),
        ("repeat = true", "tool.scaletest.repeat: True is no whole number", ""),
        ("color = 'blue'", "tool.scaletest.color: 'blue' is none of auto, always, never", ""),
        ("results = ''", "tool.scaletest.results: an empty text is no path", ""),
        ("mirror.kwok = 'ftp://x'", "tool.scaletest.mirror.kwok: 'ftp://x' is no URL", ""),
        ("binary = '/x'", "tool.scaletest.binary: no such setting", "binary.etcd"),
        ("fail = ['p99:10%', 'p99']", "pyproject.toml:2: tool.scaletest.fail: 'p99' is not METRIC:ALLOWED: write p99:10%", ""),
        ('results = "a\\u0000b"', "pyproject.toml:2: tool.scaletest.results: 'a\\x00b' is no path: it holds a NUL character", ""),
        ('mirror.etcd = "https://a\\u0000"', "tool.scaletest.mirror.etcd: 'https://a\\x00' is no URL: it holds a NUL", ""),
        ("kubernetes = '1.38-rc.1'", "tool.scaletest.kubernetes: '1.38-rc.1' is no version", ""),
        ("results = ", "pyproject.toml: cannot be read: Invalid value (at line 2, column 11)", ""),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_said_with_its_place(text: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(tmp_path, project=f"[tool.scaletest]\n{text}\n")

    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_table_that_is_none_and_a_file_that_is_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pyproject\.toml:2: tool\.scaletest: no table"):
        resolve(tmp_path, project="[tool]\nscaletest = 1\n")
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"pyproject\.toml: cannot be read: line 1: not UTF-8"):
        resolve(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [(f"a = {'[' * 5_000}", "nested too deeply"), (f"a = {'9' * 5_000}", "a number of thousands of digits")],
    ids=["brackets", "digits"],
)
def test_a_file_that_no_parser_takes_is_refused_as_any_other(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"pyproject\.toml: cannot be read: {message}"):
        resolve(tmp_path, project=text)
    with pytest.raises(UsageError, match=message):
        resolve(tmp_path, user=text)


@pytest.mark.parametrize("name", ["pyproject.toml", "config.toml"])
def test_what_is_no_file_is_not_passed_over(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(UsageError, match=rf"{name}: a directory, not a file$"):
        resolve(tmp_path)

    path.rmdir()
    path.symlink_to("nowhere")
    with pytest.raises(UsageError, match=rf"{name}: a link to nothing$"):
        resolve(tmp_path)

    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match=rf"{name}: a pipe, not a file$"):
        resolve(tmp_path)


def test_a_wrong_rule_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^SCALETEST_FAIL: 'p99' is not METRIC:ALLOWED"):
        resolve(tmp_path, environ={"SCALETEST_FAIL": "memory:10%, p99"})


def test_a_mistake_in_the_environment_names_the_variable_and_a_strange_one_is_kept(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^SCALETEST_REPEAT: 'many' is no whole number from 1 to 30$"):
        resolve(tmp_path, environ={"SCALETEST_REPEAT": "many"})

    assert ("SCALETEST_RESUTLS",) == resolve(
        tmp_path, environ={"SCALETEST_RESUTLS": "x", "SCALETEST_SUPERVISOR": "y"}
    ).strange


def test_what_other_processes_read_goes_into_the_environment_from_files_alone(tmp_path: Path) -> None:
    user = 'cache-dir = "/big/cache"\nbinary.etcd = "/opt/etcd"\nresults = "/srv"\nmirror.kwok = "http://m"\n'
    found = resolve(tmp_path, user=user, environ={"SCALETEST_MIRROR_KWOK": "http://n"})

    assert {"SCALETEST_CACHE_DIR": "/big/cache", "SCALETEST_BINARY_ETCD": "/opt/etcd"} == found.to_environment()


def test_every_program_and_release_that_there_is_has_its_setting() -> None:
    programs = {f"binary.{name}": component_named(name).environment_key for name in COMPONENTS}
    mirrors = {f"mirror.{family.name}": f"SCALETEST_MIRROR_{family.name.upper()}" for family in FAMILIES}
    listed = {key: setting.variable for key, setting in SETTINGS.items() if key.startswith(("binary.", "mirror."))}

    assert programs | mirrors == listed


def test_the_line_of_a_key_is_that_on_which_its_value_begins() -> None:
    text = '# results\nresults_of = """\nresults = 1\n"""\n\n[results]\nx = [\n  1,\n]\na.b = 1\nc = {d = 2}\n'
    file = TomlFile(Path("x.toml"), text)

    places = {("results_of",): 2, ("results",): 6, ("results", "x"): 7, ("results", "a", "b"): 10}
    assert places == {keys: file.line(keys) for keys in places}
    assert (11, None) == (file.line(("results", "c", "d")), file.line(("results", "e")))
