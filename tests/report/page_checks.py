"""What a page has to do in a real browser: draw everything, answer mouse and keyboard, ask for nothing, complain of nothing."""

from __future__ import annotations

from typing import Any

from tests.report.browser import Tab

_PAINTED = """
Array.from(document.querySelectorAll(".chart canvas"), (canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (let at = 0; at < pixels.length && colors.size < 9; at += 4) if (pixels[at + 3] > 60) colors.add(pixels[at] << 16 | pixels[at + 1] << 8 | pixels[at + 2]);
  return [canvas.closest(".chart").querySelector("h3").firstChild.textContent, colors.size];
})
"""
"""Colours in each chart: axes alone have two or three."""

_PLACE = """
(() => {
  const chart = Array.from(document.querySelectorAll(".chart")).find((item) => item.querySelector("h3").textContent.startsWith(%r));
  chart.scrollIntoView({block: "center"});
  const {left, top, width, height} = chart.querySelector(".u-over").getBoundingClientRect();
  return {left, top, width, height};
})()
"""

_LEGEND = """
Array.from(document.querySelectorAll(".chart")).filter((item) => item.querySelector(".u-legend")).map((item) =>
  [item.querySelector("h3").firstChild.textContent, Array.from(item.querySelectorAll(".u-legend .u-value"), (cell) => cell.textContent)])
"""


_FOLDED = "document.querySelectorAll('details:not([open])').length"


async def check_drawn(tab: Tab) -> list[str]:
    """Return the titles of all charts; each has been painted with more than its axes."""
    painted: list[tuple[str, int]] = await tab.evaluate(_PAINTED)
    drawn = int(await tab.evaluate("document.documentElement.dataset.drawn"))

    assert drawn == len(painted) > 0
    empty = [title for title, colors in painted if colors < 3]
    assert empty == []
    return [title for title, _ in painted]


async def check_hover(tab: Tab, title: str) -> None:
    """Move the mouse over one lane: its legend has values, and so have those of all other lanes."""
    place: dict[str, float] = await tab.evaluate(_PLACE % title)
    for share in (0.4, 0.5, 0.6):
        await tab.mouse("mouseMoved", place["left"] + share * place["width"], place["top"] + place["height"] / 2)
    await tab.settle()
    legends: list[tuple[str, list[str]]] = await tab.evaluate(_LEGEND)
    told = {name: [text for text in texts if any(letter.isdigit() for letter in text)] for name, texts in legends}

    assert len(told[title]) >= 2, told[title]
    assert sum(bool(texts) for texts in told.values()) >= 5, told
    assert ":" in await tab.evaluate("document.getElementById('readout').textContent")


async def check_zoom(tab: Tab, title: str) -> None:
    """Drag over a lane: all lanes show less time, until a double click."""
    whole = await _shown(tab)
    place: dict[str, float] = await tab.evaluate(_PLACE % title)
    x, y = place["left"], place["top"] + place["height"] / 2
    button: dict[str, Any] = {"button": "left", "buttons": 1, "clickCount": 1}
    await tab.mouse("mouseMoved", x + 0.4 * place["width"], y)
    await tab.mouse("mousePressed", x + 0.4 * place["width"], y, **button)
    await tab.mouse("mouseMoved", x + 0.5 * place["width"], y, **button)
    await tab.mouse("mouseMoved", x + 0.6 * place["width"], y, **button)
    await tab.mouse("mouseReleased", x + 0.6 * place["width"], y, **button)
    await tab.settle()
    zoomed = await _shown(tab)
    assert zoomed != whole
    for count in (1, 2):
        again = {**button, "clickCount": count}
        await tab.mouse("mousePressed", x + 0.5 * place["width"], y, **again)
        await tab.mouse("mouseReleased", x + 0.5 * place["width"], y, **again)
    await tab.settle()
    assert await _shown(tab) == whole


async def check_keyboard(tab: Tab) -> None:
    """Zoom in, move the cursor and show all with keys alone."""
    await tab.evaluate("document.getElementById('lanes').focus()")
    whole = await _shown(tab)
    await tab.key("+")
    await tab.key("+")
    await tab.settle()
    assert await _shown(tab) != whole
    await tab.key("ArrowRight")
    await tab.settle()
    before = await tab.evaluate("document.getElementById('readout').textContent")
    await tab.key("ArrowRight")
    await tab.settle()
    assert before != await tab.evaluate("document.getElementById('readout').textContent")
    await tab.key("0")
    await tab.settle()
    assert await _shown(tab) == whole


async def _shown(tab: Tab) -> str:
    """Return the time that the lanes show."""
    text: str = await tab.evaluate("document.documentElement.dataset.view || ''")
    return text


async def check_print(tab: Tab) -> None:
    """Printed, charts are no wider than the paper, nothing stays folded, and afterwards all is as before."""
    folded = await tab.evaluate(_FOLDED)
    await tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    # Unfolding resizes the page, and what listens to that must leave the charts as they are.
    await tab.settle()
    widths: list[float] = await tab.evaluate(
        "Array.from(document.querySelectorAll('.uplot'), (plot) => plot.getBoundingClientRect().width)"
    )
    assert widths
    assert max(widths) <= 680
    assert await tab.evaluate(_FOLDED) == 0
    await tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert await tab.evaluate(_FOLDED) == folded


async def check_quiet(tab: Tab, page: str) -> None:
    """The page asked for nothing but itself, and nothing was wrong with it."""
    assert tab.complaints == []
    others = [url for url in tab.requests if url != page and not url.startswith("data:")]
    assert others == []


async def check_width(tab: Tab, width: int) -> None:
    """Nothing sticks out: the page itself never scrolls sideways."""
    assert await tab.evaluate("document.documentElement.scrollWidth") <= width
