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

drawAll();
listenToView();
document.documentElement.dataset.drawn = String(charts.size);
show(...data.range);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// A chart that has become narrower is wider than its place until this: its own width must not hold the place open.
new ResizeObserver(() => requestAnimationFrame(() => fitAll())).observe(document.getElementById("main"));

const PRINTED_WIDTH = 680;
const closed = [];
addEventListener("beforeprint", () => {
  for (const item of document.querySelectorAll("details:not([open])")) { item.open = true; closed.push(item); }
  drawAll();
  fitAll(PRINTED_WIDTH);
});
addEventListener("afterprint", () => {
  for (const item of closed.splice(0)) item.open = false;
  drawAll();
});
