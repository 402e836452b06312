// Draw all charts, and draw them again when colours change.

function drawAll() {
  for (const plot of charts) plot.destroy();
  charts.clear();
  timed.length = 0;
  saturation();
  timeline();
  latency();
  if (at !== null) moveTo(at);
}

let printedWidth;

drawAll();
listenToView();
document.documentElement.dataset.drawn = String(charts.size);
show(...data.range);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// A chart that has become narrower is wider than its place until this: its own width must not hold the place open.
// Opening what is folded, for paper, resizes the page too: charts keep the paper's width until it is printed.
new ResizeObserver(() => requestAnimationFrame(() => fitAll(printedWidth))).observe(document.getElementById("main"));

const PRINTED_WIDTH = 680;
const closed = [];
addEventListener("beforeprint", () => {
  for (const item of document.querySelectorAll("details:not([open])")) { item.open = true; closed.push(item); }
  printedWidth = PRINTED_WIDTH;
  drawAll();
  fitAll(printedWidth);
});
addEventListener("afterprint", () => {
  printedWidth = undefined;
  for (const item of closed.splice(0)) item.open = false;
  drawAll();
});
