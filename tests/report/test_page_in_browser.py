"""The HTML report in a real browser without network; where there is no Chromium, `python -m benchmarks.page` says so too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scaletest.report.build import build
from scaletest.report.page.render import render_page
from tests.analysis.journals import record
from tests.analysis.outages import outage, outage_info
from tests.analysis.searches import measured_search, search_info
from tests.report.browser import CHROMIUM, browser
from tests.report.built import loaded
from tests.report.page_checks import (
    check_drawn,
    check_hover,
    check_keyboard,
    check_print,
    check_quiet,
    check_width,
    check_zoom,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


def test_pages_are_drawn_and_answer_without_a_request_or_a_complaint(tmp_path: Path) -> None:
    runs = {
        "outage": loaded(outage(helps=False), outage_info()),
        "search": loaded(measured_search(), search_info()),
        "nothing": loaded([record("run.start", 0.0)]),
    }
    for name, run in runs.items():
        (tmp_path / f"{name}.html").write_text(render_page(run, build(run)), encoding="utf-8")
    asyncio.run(_look_at({name: (tmp_path / f"{name}.html").as_uri() for name in runs}))


async def _look_at(pages: dict[str, str]) -> None:
    assert CHROMIUM is not None
    async with browser(CHROMIUM) as tab:
        await tab.open(pages["outage"], width=1280)
        titles = await check_drawn(tab)
        assert {"What happened", "Memory", "CPU", "Probes", "Distribution over the run"} <= set(titles)
        await check_zoom(tab, "Memory")
        await check_keyboard(tab)
        await check_hover(tab, "Memory")
        await check_print(tab)
        await tab.open(pages["search"], width=390, dark=True, touch=True)
        assert "Goodput against agents" in await check_drawn(tab)
        await check_width(tab, 390)
        await tab.open(pages["nothing"], width=390)
        await check_width(tab, 390)
        for page in pages.values():
            tab.requests = [url for url in tab.requests if url != page]
        await check_quiet(tab, "")
