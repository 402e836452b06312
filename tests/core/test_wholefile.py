"""Files are replaced whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.wholefile import write_whole


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "old, and longer")
    write_whole(path, "new")

    assert path.read_text(encoding="utf-8") == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")

    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "begins well, then \ud800")

    assert path.read_text(encoding="utf-8") == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "new"


def test_a_device_is_written_to_and_stays_a_device() -> None:
    write_whole(Path("/dev/null"), "gone")

    assert Path("/dev/null").is_char_device()


def test_a_full_device_is_an_os_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_whole(Path("/dev/full"), "no room")
