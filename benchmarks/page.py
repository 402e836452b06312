"""Does the HTML report work in a real browser? ``python -m benchmarks.page [RUN] [--pictures DIR]``.

Opens the page of a run directory (a synthetic outage unless one is named) in a headless Chromium without network, at 1280 and 390 px,
light and dark, and fails when it asks for anything, complains of anything, leaves a chart empty or does not answer mouse and
keyboard. ``--pictures`` keeps what it looked like.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from scaletest.report.build import build
from scaletest.report.page.render import render_page
from scaletest.report.rundir import load_run
from tests.analysis.journals import write_run
from tests.analysis.outages import outage, outage_info
from tests.report.browser import CHROMIUM, Tab, browser
from tests.report.page_checks import (
    check_drawn,
    check_hover,
    check_keyboard,
    check_print,
    check_quiet,
    check_width,
    check_zoom,
)

_LOOKS = [(width, dark) for width in (1280, 390) for dark in (False, True)]
_HEIGHT = 1440


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    if CHROMIUM is None:
        print("no Chromium here")
        return 3
    with tempfile.TemporaryDirectory() as scratch:
        run = options.run or write_run(Path(scratch) / "run", outage(helps=False), outage_info())
        page = Path(scratch) / "report.html"
        loaded = load_run(run)
        page.write_text(render_page(loaded, build(loaded)), encoding="utf-8")
        print(f"{run}: {page.stat().st_size / 1e3:.0f} KB")
        for name, picture in asyncio.run(_check(CHROMIUM, page.resolve().as_uri())):
            if options.pictures is not None:
                (options.pictures / f"page-{name}.png").write_bytes(picture)
    return 0


async def _check(program: str, page: str) -> list[tuple[str, bytes]]:
    pictures = []
    async with browser(program) as tab:
        for width, dark in _LOOKS:
            began_s = time.perf_counter()
            await tab.open(page, width=width, height=_HEIGHT, dark=dark, touch=width < 500)
            opened_s = time.perf_counter() - began_s
            titles = await check_drawn(tab)
            await check_width(tab, width)
            await _interact(tab)
            await check_print(tab)
            name = f"{width}-{'dark' if dark else 'light'}"
            print(f"{name}: {len(titles)} charts, open after {opened_s:.2f} s")
            await tab.mouse("mouseMoved", 1, 1)
            await tab.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
            await tab.settle()
            pictures.append((name, await tab.screenshot(whole=False)))
        await check_quiet(tab, page)
        print("no request, no complaint")
    return pictures


async def _interact(tab: Tab) -> None:
    await check_zoom(tab, "Memory")
    await check_keyboard(tab)
    await check_hover(tab, "Memory")


if __name__ == "__main__":
    sys.exit(main())
