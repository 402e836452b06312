// What all charts have in common: size, axes, legends that a keyboard reaches, and hovering over what was measured only now and then.

const GUTTER = 66;
const charts = new Set();

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A chart under its title; `make(width)` returns the uPlot options.
function addChart(parent, title, note, make, values) {
  const box = element("figure", { class: "chart", role: "group", "aria-label": note ? `${title}: ${note}` : title });
  box.append(element("h3", {}, title, element("small", {}, note || "")));
  parent.append(box);
  const plot = new uPlot(make(Math.max(box.clientWidth, 200)), values, box);
  for (const name of box.querySelectorAll(".u-legend .u-series th")) {
    name.tabIndex = 0;
    name.setAttribute("role", "button");
    name.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      name.click();
    });
  }
  charts.add(plot);
  return plot;
}

function fitAll(width) {
  for (const plot of charts) {
    const room = width || plot.root.parentElement.clientWidth;
    if (room && room !== plot.width) plot.setSize({ width: room, height: plot.heightAt ? plot.heightAt(room) : plot.height });
  }
}

const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);

function axes(unit, x, log = false, size = GUTTER) {
  const common = {
    stroke: () => color("muted"), font: "11px system-ui, sans-serif",
    grid: { stroke: () => color("line"), width: 0.5 }, ticks: { show: false },
  };
  // Decades are told apart by their zeros: minutes would hide them.
  const format = log && unit === "seconds" ? (value) => (value < 1 ? seconds(value) : `${count(value)} s`) : FORMATS[unit];
  const y = {
    ...common, ...(unit.startsWith("bytes") && !log ? { incrs: BINARY } : {}), size, gap: 4, space: log ? 18 : 26,
    values: (plot, splits) => splits.map((value) => (value === null ? "" : log && !isDecade(value) ? "" : format(value))),
  };
  return [{ ...common, size: 24, gap: 5, space: 56, ...x }, y];
}

function isDecade(value) {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-6;
}

// Whole decades around what there is, so that a label always stands on the axis.
function logRange(plot, low, high) {
  if (!(low > 0) || !(high > 0)) return [0.001, 1];
  const bottom = Math.floor(Math.log10(low) + 1e-9);
  return [10 ** bottom, 10 ** Math.max(bottom + 1, Math.ceil(Math.log10(high) - 1e-9))];
}

function fromZero(plot, low, high) {
  return [0, high > 0 ? high * 1.08 : 1];
}

// The nearest sample of a series that has none at the cursor, but no farther than `reach` places.
function nearest(reach) {
  return (plot, series, at) => {
    const values = plot.data[series];
    if (series === 0 || values[at] != null) return at;
    for (let away = 1; away <= reach; away += 1) {
      if (values[at - away] != null) return at - away;
      if (values[at + away] != null) return at + away;
    }
    return at;
  };
}

// The value at the cursor; without a cursor the most, which also is what a printed page has.
function legendValue(unit, all = []) {
  const known = all.filter((value) => value != null);
  const most = known.length ? `≤ ${FORMATS[unit](known.reduce((one, other) => Math.max(one, other)))}` : "–";
  return (plot, value) => (value != null ? FORMATS[unit](value) : plot.cursor.idx == null ? most : "–");
}

function crosses(plot, series, stroke) {
  const { ctx } = plot;
  const size = 3 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 1.3 * devicePixelRatio;
  ctx.beginPath();
  plot.data[series].forEach((value, at) => {
    if (value == null) return;
    const x = plot.valToPos(plot.data[0][at], "x", true);
    const y = plot.valToPos(value, "y", true);
    ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
    ctx.moveTo(x - size, y + size); ctx.lineTo(x + size, y - size);
  });
  ctx.stroke();
  ctx.restore();
}

function verticalLine(plot, at, stroke, dash = []) {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(at, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}
