"""Reports in every form, from the command line: to stdout and into files; runs listed, removed, opened; what cannot be read or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

from scaletest.cli._formats import Format
from scaletest.cli._reports import parse_report_files, read_subject, render
from scaletest.cli._running import RunRequest, deliver
from scaletest.cli.main import app
from scaletest.core.errors import EnvironmentProblem, ExitCode, RunDirectoryError, UsageError
from scaletest.core.journal import JOURNAL_NAME
from scaletest.core.rundir import RUN_INFO_NAME, VERDICT_NAME, write_json
from scaletest.report.json_report import render_json
from scaletest.report.rundir import load_run
from tests.analysis.journals import run_info, small_run, write_run
from tests.report.comparison_documents import comparison
from tests.report.matrices import calm_run, write_matrix

FORMS = [form.value for form in Format]


def scaletest(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    now = datetime.now(UTC)
    for days, name, finished in ((40, "smoke", True), (3, "smoke", False), (1, "other", True)):
        started = now - timedelta(days=days)
        directory = tmp_path / "results" / f"{started:%Y%m%dT%H%M%SZ}-{name}"
        info = run_info(id=directory.name, started_at=started.isoformat(), profile={**run_info().profile, "name": name})
        write_run(directory, small_run(finished=finished), info)
        if finished:
            write_json(directory / VERDICT_NAME, load_run(directory).verdict.to_json())
        os.utime(directory / JOURNAL_NAME, (0, 0))
    return tmp_path / "results"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_printed_and_written_the_same(results: Path, form: str) -> None:
    printed = scaletest("report", "latest", "--format", form)
    written = scaletest("report", "latest", "--format", form, "--output", "new/report")

    assert (printed.exit_code, written.exit_code) == (0, 0), printed.output
    assert written.output == ""
    text = Path("new/report").read_text(encoding="utf-8")
    assert text.strip() if form == "text" else text == printed.output
    assert [item.name for item in Path("new").iterdir()] == ["report"]


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_was_killed_has_every_form(results: Path, form: str) -> None:
    killed = next(item for item in sorted(results.iterdir()) if not (item / VERDICT_NAME).exists())

    assert scaletest("report", str(killed), "--format", form).exit_code == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_matrix_has_every_form(tmp_path: Path, form: str) -> None:
    directory = write_matrix(tmp_path / "m", {"none": [small_run()], "block": [calm_run()], "drain": [None]})

    assert scaletest("report", str(directory), "--format", form).exit_code == 0


def test_several_runs_make_one_document_but_for_a_page(results: Path) -> None:
    runs = [str(item) for item in sorted(results.iterdir())]

    assert len(ET.fromstring(scaletest("report", *runs, "--format", "junit").output)) == 3
    assert isinstance(scaletest("report", *runs, "--format", "html").exception, UsageError)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "html"])
def test_a_run_that_is_named_twice_is_reported_once(results: Path, form: str) -> None:
    name = max(item.name for item in results.iterdir())
    once = scaletest("report", f"results/{name}", "--format", form)
    twice = scaletest("report", f"results/{name}", "latest", f"./results/../results/{name}", "--format", form)

    assert once.stdout == twice.stdout
    assert twice.stderr.count("named twice; reported once") == 2


def test_a_run_beside_its_matrix_is_in_forms_of_runs_once(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "m", {"none": [small_run()], "block": [calm_run()]})
    both = (str(directory), str(directory / "lever=none"))

    done = scaletest("report", *both, "--format", "openmetrics")
    assert done.stdout == scaletest("report", str(directory), "--format", "openmetrics").stdout
    assert "its matrix is named too" in done.stderr
    assert "named" not in scaletest("report", *both).stderr


def test_a_comparison_goes_into_every_form_that_people_read(results: Path, tmp_path: Path) -> None:
    (tmp_path / "compared.json").write_text(render_json(comparison()), encoding="utf-8")
    for form in ("html", "markdown", "junit"):
        printed = scaletest("report", "latest", "--format", form, "--comparison", "compared.json").output
        assert "flow.agents.p99" in printed, form
        assert "warning: the comparison is of other runs" in printed
    done = scaletest("report", "latest", "--format", "csv", "--comparison", "compared.json")
    assert isinstance(done.exception, UsageError)
    assert "a report as csv has no room for it, only html, markdown, junit" in done.exception.message


def test_what_is_no_comparison_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    (tmp_path / "deep.json").write_text("[" * 200_000, encoding="utf-8")

    for name in ("other.json", "deep.json", "none.json"):
        done = scaletest("report", "latest", "--format", "html", "--comparison", name)
        assert isinstance(done.exception, RunDirectoryError)


def test_the_exit_code_of_the_verdict_is_given_with_a_file_too(results: Path) -> None:
    assert scaletest("report", "latest", "--format", "junit", "-o", "junit.xml", "--exit-code").exit_code == 99


@pytest.mark.parametrize("path", ["a-file/report.xml", "results", "/proc/none/report.xml", "/dev/full"])
def test_a_path_that_cannot_be_written_is_said_and_nothing_is_left(results: Path, path: str) -> None:
    Path("a-file").write_text("a file, no directory", encoding="utf-8")
    before = sorted(item.name for item in Path().iterdir())
    done = scaletest("report", "latest", "--format", "junit", "--output", path)

    assert isinstance(done.exception, UsageError | EnvironmentProblem)
    assert path in done.exception.message
    assert "cannot be written" in done.exception.message
    assert sorted(item.name for item in Path().iterdir()) == before


@pytest.mark.parametrize("name", [RUN_INFO_NAME, JOURNAL_NAME, VERDICT_NAME])
def test_no_report_replaces_what_a_run_consists_of(results: Path, tmp_path: Path, name: str) -> None:
    run = next(path for path in results.iterdir() if (path / VERDICT_NAME).exists())
    link = tmp_path / "link.json"
    link.symlink_to(run / name)
    before = (run / name).read_bytes()

    for path in (run / name, link):
        done = scaletest("report", str(run), "--format", "json", "--output", str(path))
        assert isinstance(done.exception, UsageError)
        assert "a file of a run" in done.exception.message
        with pytest.raises(UsageError, match="a file of a run"):
            parse_report_files([f"json={path}"])
    assert before == (run / name).read_bytes()


def test_two_reports_do_not_go_into_one_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another report goes into that file"):
        parse_report_files([f"json={tmp_path / 'x'}", f"junit={tmp_path / 'd' / '..' / 'x'}"])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_document_is_utf_8_where_the_stream_lacks_its_characters(results: Path, encoding: str) -> None:
    run = next(path for path in results.iterdir() if (path / VERDICT_NAME).exists())
    command = [sys.executable, "-m", "scaletest", "report", str(run), "--format", "markdown"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": encoding})

    assert 0 == done.returncode, done.stderr
    assert scaletest("report", str(run), "--format", "markdown").stdout == done.stdout.decode()


@pytest.mark.parametrize("text", ["junit", "junit=", "=x.xml", "pdf=x.pdf", "junit=.", "junit=a-file/x.xml"])
def test_a_report_that_cannot_be_made_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-file").touch()

    assert isinstance(scaletest("run", "smoke", "--report", text).exception, UsageError)


@pytest.mark.parametrize(("form", "ending"), [("json", "json"), ("junit", "xml"), ("html", "html"), ("markdown", "md")])
def test_a_directory_is_no_report_and_the_hint_is_of_its_form(results: Path, form: str, ending: str) -> None:
    error = scaletest("run", "smoke", "--report", f"{form}=results").exception

    assert isinstance(error, UsageError)
    assert f"--report {form}=results: a directory; a report is one file" == error.message
    assert f"Name a file: --report {form}=results/report.{ending}" == error.hint


def request(*files: str, form: Format = Format.TEXT) -> RunRequest:
    return RunRequest(
        "smoke", (), None, None, None, keep=False, binaries=(), dry_run=False, format=form,
        reports=parse_report_files(files),
    )  # fmt: skip


def test_a_run_writes_its_reports_beside_the_one_it_prints(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    subject = read_subject(max(results.iterdir()))
    code = deliver(subject, request("junit=out/junit.xml", "html=out/report.html", form=Format.JSON), ExitCode.FAILED)
    said = capsys.readouterr()

    assert code == ExitCode.FAILED
    assert json.loads(said.out)["verdict"]["outcome"] == "fail"
    assert said.err.startswith("::error title=scaletest other%3A fail::")
    assert Path("summary.md").read_text(encoding="utf-8").startswith("### ❌ other: fail")
    assert sorted(item.name for item in Path("out").iterdir()) == ["junit.xml", "report.html"]


def test_a_report_of_a_run_that_finds_no_room_is_said_and_the_others_are_written(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = read_subject(max(results.iterdir()))
    code = deliver(subject, request("junit=/dev/full", "markdown=summary.md"), ExitCode.PASS)
    said = capsys.readouterr()

    assert code == ExitCode.ENVIRONMENT
    assert "/dev/full: the report cannot be written: No space left on device" in said.err
    assert "FAIL" in said.out
    assert Path("summary.md").exists()


def test_a_matrix_is_summed_up_for_github(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    directory = write_matrix(tmp_path / "m", {"none": [small_run()], "drain": [None]})
    subject = read_subject(directory)

    assert deliver(subject, request(), subject.exit_code) == ExitCode.INTERRUPTED
    assert "::error title=scaletest smoke%2C lever=none%3A fail" in capsys.readouterr().err


def test_a_page_is_not_poured_onto_a_terminal(results: Path) -> None:
    command = f"{sys.executable} -m scaletest report latest --format html"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "HTML is no text for a terminal" in done.stdout


# Runs, listed and removed.


def names(done: Result) -> list[str]:
    return [Path(item["directory"]).name[17:] for item in json.loads(done.output)]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], ["smoke", "smoke", "other"]),
        (["--profile", "smoke"], ["smoke", "smoke"]),
        (["--verdict", "incomplete"], ["smoke"]),
        (["--verdict", "incomplete", "--verdict", "fail"], ["smoke", "smoke", "other"]),
        (["--older-than", "30d"], ["smoke"]),
        (["--newer-than", "36h"], ["other"]),
        (["--older-than", "36h", "--newer-than", "7d"], ["smoke"]),
    ],
)
def test_runs_are_listed_by_profile_verdict_and_age(results: Path, options: list[str], found: list[str]) -> None:
    assert names(scaletest("runs", "list", "--format", "json", *options)) == found


def test_the_list_says_what_each_came_to(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = scaletest("runs", "list").output

    assert "incomplete" in text
    assert "flow.agents.error_rate < 1%" in text


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("profile", ["smoke", "a-profile-of-a-name-of-forty-characters-"])
def test_a_long_name_is_shortened_and_the_verdict_is_not(
    results: Path, width: int, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    info = run_info(profile={**run_info().profile, "name": profile})
    write_run(results / f"20261130T120000Z-{'long-' * 20}", small_run(finished=False), info)
    _, *rows = scaletest("runs", "list").output.strip("\n").splitlines()

    assert len(rows) == 4
    assert all(len(row) <= width for row in rows)
    words = next(row.split() for row in rows if "20261130T120000Z-" in row)
    assert words[0].endswith("…")
    assert (words[2] in {"incomplete", "running"}, words[4]) == (True, "KiB")


def test_a_directory_without_runs_and_a_file_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()

    assert scaletest("runs", "list", "--results", str(empty)).output == f"no run under {empty}/\n"
    filtered = scaletest("runs", "list", "--results", str(empty), "--verdict", "fail")
    assert filtered.output == f"no such run under {empty}/\n"
    assert "file: no directory, but a file" in str(
        scaletest("runs", "list", "--results", str(tmp_path / "file")).exception
    )


def test_what_cannot_be_read_is_listed_as_such_and_what_is_no_run_is_not(results: Path) -> None:
    newest = max(results.iterdir())
    (newest / RUN_INFO_NAME).write_text('{"schema_version": 99, "profile": {}}', encoding="utf-8")
    (results / "notes").mkdir()
    (results / "link").symlink_to(newest)
    listed = json.loads(scaletest("runs", "list", "--format", "json").output)

    assert len(listed) == 3
    (unreadable,) = (item for item in listed if item["outcome"] == "unreadable")
    assert "newer scaletest" in unreadable["said"]


def test_one_damaged_run_takes_no_room_from_the_others_and_is_told_below_the_table(results: Path) -> None:
    first, killed, newest = sorted(results.iterdir())
    message = "line 1: cut short or no JSON: Expecting value"
    (newest / RUN_INFO_NAME).write_text("no JSON " * 50, encoding="utf-8")
    (killed / JOURNAL_NAME).unlink()
    (first / VERDICT_NAME).write_text("[" * 200_000, encoding="utf-8")
    text = scaletest("runs", "list").output
    table, _, below = text.strip("\n").partition("\n\n")

    header, *rows = table.splitlines()
    assert ["run", "profile", "verdict", "size"] == header.split()
    assert [first.name, killed.name, newest.name] == [
        row.split()[0] for row in sorted(rows, key=lambda row: row.split()[0])
    ]
    assert sorted(["unreadable", "incomplete", "unreadable"]) == sorted(row.split()[2] for row in rows)
    assert "there is no journal" in table
    assert 2 == table.count("see below")
    assert message not in table
    told = " ".join(below.split())
    assert 1 == told.count(f"{newest.name}: {RUN_INFO_NAME}: {message}")
    assert 1 == told.count(f"{first.name}: {VERDICT_NAME}: nested too deeply")


def test_a_long_reason_or_profile_leaves_the_other_columns_whole(results: Path) -> None:
    newest = max(results.iterdir())
    verdict = json.loads((newest / VERDICT_NAME).read_text(encoding="utf-8"))
    write_json(newest / VERDICT_NAME, {**verdict, "reasons": ["because " * 60]})
    (row,) = [line for line in scaletest("runs", "list").output.splitlines() if newest.name in line]

    assert [newest.name, "other", "fail"] == row.split()[:3]
    assert "…" in row


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"schema_version": 1, "outcome": 5, "reasons": []}', '{"outcome": "pass", "reasons": "x"}',
     '{"outcome": "pass", "exit_code": NaN, "reasons": []}'],
)  # fmt: skip
def test_a_damaged_verdict_ends_no_list(results: Path, text: str) -> None:
    newest = max(results.iterdir())
    (newest / VERDICT_NAME).write_text(text, encoding="utf-8")
    listed = json.loads(scaletest("runs", "list", "--format", "json").output)

    assert ("unreadable", True) == (listed[-1]["outcome"], listed[-1]["said"].startswith(f"{VERDICT_NAME}: "))


def test_a_run_directory_of_any_name_is_listed_and_reported(results: Path) -> None:
    odd = max(results.iterdir()).rename(results / "99\udcff\x1b[2J")

    assert "99\ufffd\ufffd[2J" in scaletest("runs", "list").output
    listed = json.loads(scaletest("runs", "list", "--format", "json").output)
    assert "results/99\ufffd\x1b[2J" in {item["directory"] for item in listed}
    for form in FORMS:
        done = scaletest("report", str(odd), "--format", form)
        assert done.exit_code == 0, done.exception


def test_nothing_is_removed_without_a_yes(results: Path) -> None:
    done = scaletest("runs", "prune", "--older-than", "30d")

    assert done.exit_code == 0
    assert "would remove" in done.output
    assert len(list(results.iterdir())) == 3


def test_old_runs_are_removed_and_the_newest_of_each_profile_kept(results: Path) -> None:
    assert scaletest("runs", "prune", "--keep", "1", "--yes").exit_code == 0
    assert names(scaletest("runs", "list", "--format", "json")) == ["smoke", "other"]
    assert scaletest("runs", "prune", "--older-than", "2d", "--yes").exit_code == 0
    assert names(scaletest("runs", "list", "--format", "json")) == ["other"]


def test_none_are_kept_when_none_are_to_be(results: Path) -> None:
    (results / "20200101T000000Z-x").mkdir()

    assert "nothing was removed: --yes does it" in scaletest("runs", "prune", "--keep", "0").output
    assert 4 == len(list(results.iterdir()))
    assert 0 == scaletest("runs", "prune", "--keep", "0", "--yes").exit_code
    assert ["20200101T000000Z-x"] == [item.name for item in results.iterdir()]


def test_more_may_be_kept_than_there_are(results: Path) -> None:
    assert scaletest("runs", "prune", "--keep", "3", "--yes").exit_code == 0
    assert 3 == len(list(results.iterdir()))


def test_a_run_that_may_be_going_on_or_cannot_be_read_is_not_removed(results: Path) -> None:
    first, killed, newest = sorted(results.iterdir())
    (killed / JOURNAL_NAME).touch()
    (newest / RUN_INFO_NAME).write_text("torn", encoding="utf-8")
    assert scaletest("runs", "prune", "--keep", "0", "--older-than", "0s", "--yes").exit_code == 0

    assert [killed, newest] == sorted(results.iterdir())
    assert not first.exists()


@pytest.mark.parametrize("options", [[], ["--older-than", "soon"], ["--results", "none", "--keep", "1"]])
def test_prune_wants_to_know_which(results: Path, options: list[str]) -> None:
    assert isinstance(scaletest("runs", "prune", "--yes", *options).exception, UsageError)
    assert len(list(results.iterdir())) == 3


def opened(**environ: str) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if name not in {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"}}
    command = [sys.executable, "-m", "scaletest", "open"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**bare, **environ})


def test_open_makes_the_page_and_starts_the_browser(results: Path) -> None:
    done = opened(BROWSER="test -n %s")

    assert (0, "") == (done.returncode, done.stderr)
    assert Path(done.stdout.strip()).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_open_says_where_the_page_is_when_there_is_no_browser(results: Path) -> None:
    done = opened(PATH="/nowhere")

    assert 3 == done.returncode
    assert Path(done.stdout.strip()).exists()
    assert "no browser" in done.stderr


def test_all_forms_of_one_subject_come_from_one_reading(results: Path) -> None:
    subject = read_subject(max(results.iterdir()))
    (subject.directory / JOURNAL_NAME).unlink()

    for form in Format:
        assert render([subject], form)
