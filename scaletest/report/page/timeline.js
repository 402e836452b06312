// Lanes under each other that share one axis of time, one cursor and one zoom.

const timed = [];
const view = { min: data.range[0], max: data.range[1] };
let at = null;

function show(min, max) {
  const [first, last] = data.range;
  const width = Math.min(Math.max(max - min, Math.min(2, last - first)), last - first);
  view.min = Math.min(Math.max(min, first), last - width);
  view.max = view.min + width;
  for (const plot of timed) plot.setScale("x", { min: view.min, max: view.max });
  document.documentElement.dataset.view = `${clock(view.min, 0.01)} to ${clock(view.max, 0.01)}`;
  if (at !== null) moveTo(at);
}

function zoom(factor) {
  const middle = at !== null && at >= view.min && at <= view.max ? at : (view.min + view.max) / 2;
  show(middle - (middle - view.min) * factor, middle + (view.max - middle) * factor);
}

function pan(share) {
  const by = share * (view.max - view.min);
  show(view.min + by, view.max + by);
}

function moveTo(seconds) {
  at = Math.min(Math.max(seconds, view.min), view.max);
  for (const plot of timed) plot.setCursor({ left: plot.valToPos(at, "x"), top: 8 }, false);
  readOut();
}

function readOut() {
  const output = document.getElementById("readout");
  if (at === null) { output.textContent = ""; return; }
  const since = data.rollout === null ? "" : ` (T${at < data.rollout ? "−" : "+"}${seconds(Math.abs(at - data.rollout))})`;
  const phase = data.phases.find(([, start, end]) => start <= at && at <= end);
  const told = data.rows.slice(data.phases.length ? 1 : 0).flatMap((row) =>
    row.parts.filter(([start, end]) => start <= at && at <= end).map(([, , , text]) => `${row.name} ${text}`));
  output.textContent = [clock(at, 0.1) + since, ...(phase ? [`phase ${phase[0]}`] : []), ...told].join(" · ");
}

const cursor = {
  y: false,
  drag: { x: true, y: false, setScale: false },
  sync: { key: "time", scales: ["x", null], setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
  bind: { dblclick: () => () => { show(...data.range); return null; } },
  points: { size: 6 },
};

function timeHooks(more = {}) {
  return {
    drawClear: [shadePhases, drawEvents, ...(more.drawClear || [])],
    draw: more.draw || [],
    setSelect: [(plot) => {
      const { left, width } = plot.select;
      if (width > 4) show(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }],
    setCursor: [(plot) => {
      if (plot.cursor.left < 0 || !plot.root.matches(":hover")) return;
      at = plot.posToVal(plot.cursor.left, "x");
      readOut();
    }],
  };
}

const timeAxis = { values: (plot, splits, axis, space, step) => splits.map((value) => clock(value, step)), incrs: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600] };
const timeScale = { time: false, range: () => [view.min, view.max] };

function shadePhases(plot) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = color("phase");
  data.phases.forEach(([, start, end], index) => {
    if (index % 2 === 0) return;
    const left = Math.max(plot.valToPos(start, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(end, "x", true), bbox.left + bbox.width);
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  });
  ctx.restore();
}

function drawEvents(plot) {
  for (const [t, level] of data.events) verticalLine(plot, t, faded(color(level === "info" ? "muted" : level), 0.7), [2, 3]);
}

function addTimed(parent, title, note, make, values) {
  const plot = addChart(parent, title, note, make, values);
  timed.push(plot);
  return plot;
}

// What lasted, as bars: a row each. Its name stands beside it, or above it where the page is narrow.
const NARROW = 700;
const WIDEST_NAME = 210;
const BAR = 12;
const BESIDE = 19;
const ABOVE = 30;

let namesWidth = null;

// Room left of the axis, the same for all lanes: one time stands at one place.
function gutter(width) {
  if (width < NARROW) return GUTTER;
  if (namesWidth === null) {
    const ctx = document.createElement("canvas").getContext("2d");
    ctx.font = "11px system-ui, sans-serif";
    namesWidth = Math.ceil(Math.max(0, ...data.rows.map((row) => ctx.measureText(row.name).width)));
  }
  return Math.max(GUTTER, Math.min(WIDEST_NAME, namesWidth) + 14);
}

const lanesGutter = (plot) => {
  const size = gutter(plot.width);
  document.documentElement.style.setProperty("--gutter", `${size}px`);
  return size;
};

function rowsHeight(width) {
  return data.rows.length * (width < NARROW ? ABOVE : BESIDE) + 36;
}

function addRows(parent) {
  if (!data.rows.length) return;
  const options = (width) => ({
    width, height: rowsHeight(width), cursor: { ...cursor, points: { show: false } }, legend: { show: false },
    scales: { x: timeScale, y: { range: () => [0, 1] } },
    axes: [axes("count", timeAxis)[0], { size: lanesGutter, values: () => [], splits: () => [], grid: { show: false }, ticks: { show: false } }],
    series: [{}, { show: false }], padding: [6, 12, 0, 0],
    hooks: timeHooks({ draw: [drawRows] }),
  });
  const plot = addTimed(parent, "What happened", "phases, flows, lock-outs, kills, actions; the cursor tells what they are", options, [data.range, [null, null]]);
  plot.heightAt = rowsHeight;
}

// Cut a name in its middle where it is too long: both ends tell.
function shortened(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  for (let kept = text.length - 1; kept > 2; kept -= 1) {
    const head = Math.ceil(kept / 2);
    const cut = `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
    if (ctx.measureText(cut).width <= room) return cut;
  }
  return "…";
}

function drawRows(plot) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const above = plot.width < NARROW;
  const height = (above ? ABOVE : BESIDE) * ratio;
  const fills = { phase: color("accent"), info: color("muted"), good: color("good"), warning: color("warning"), bad: color("bad"), lever: color("lever") };
  const room = above ? bbox.left + bbox.width - 2 * ratio : bbox.left - 10 * ratio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, bbox.top, bbox.left + bbox.width, bbox.height);
  ctx.clip();
  ctx.textBaseline = "middle";
  ctx.strokeStyle = color("line");
  ctx.lineWidth = 0.5 * ratio;
  data.rows.forEach((row, index) => {
    const top = bbox.top + index * height;
    const barTop = top + height - (BAR + 3) * ratio;
    const middle = barTop + (BAR / 2) * ratio;
    if (index > 0) {
      ctx.beginPath();
      ctx.moveTo(0, top);
      ctx.lineTo(bbox.left + bbox.width, top);
      ctx.stroke();
    }
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = color("text");
    ctx.textAlign = above ? "left" : "right";
    ctx.fillText(shortened(ctx, row.name, room), above ? 2 * ratio : bbox.left - 8 * ratio, above ? top + 8 * ratio : middle);
    ctx.textAlign = "left";
    for (const [start, end, level, text] of row.parts) {
      const left = Math.max(plot.valToPos(start, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(end, "x", true), bbox.left + bbox.width);
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      const width = Math.max(right - left, 2 * ratio);
      ctx.fillStyle = faded(fills[level], level === "phase" ? 0.25 : 0.8);
      ctx.fillRect(left, barTop, width - (level === "phase" ? ratio : 0), BAR * ratio);
      if (level !== "phase" || width < 16 * ratio) continue;
      ctx.fillStyle = color("text");
      ctx.font = `${10 * ratio}px system-ui, sans-serif`;
      ctx.fillText(shortened(ctx, text, width - 6 * ratio), left + 3 * ratio, middle);
    }
  });
  ctx.restore();
}

function lineValues(line, slots) {
  const spread = (values) => {
    if (!line.i) return values;
    const whole = new Array(slots);
    line.i.forEach((slot, index) => {
      whole[slot] = values[index];
      // Only a run of nulls is a gap: what is undefined is drawn through.
      if (values[index] === null) whole.fill(null, slot, line.i[index + 1]);
    });
    return whole;
  };
  return { high: spread(line.v), low: line.l ? spread(line.l) : null };
}

function addLane(parent, lane) {
  const [start, step, slots] = data.grid;
  const times = Array.from({ length: slots }, (_, index) => start + step * (index + 0.5));
  const values = [times];
  const series = [{ label: "time", value: (plot, value) => (value == null ? "" : clock(value, 0.1)) }];
  const bands = [];
  const edges = [];
  const marked = [];
  const colors = palette();
  const bound = new Map(lane.bounds);
  const clean = (list) => (lane.log ? list.map((value) => (value != null && value <= 0 ? null : value)) : list);
  lane.lines.forEach((line) => {
    const { high, low } = lineValues(line, slots);
    const stroke = colors[line.c % colors.length];
    series.push({
      label: line.name, stroke, width: 1.3, value: legendValue(lane.unit, high),
      ...(line.marks ? { paths: () => null, points: { show: false } } : { points: { show: true, filter: alone, size: 4, fill: stroke } }),
    });
    values.push(clean(high));
    if (line.marks) marked.push([values.length - 1, stroke]);
    if (low) {
      series.push({ label: "", stroke, width: 0, points: { show: false } });
      values.push(clean(low));
      edges.push(values.length - 1);
      bands.push({ series: [values.length - 2, values.length - 1], fill: faded(stroke, 0.25) });
    }
  });
  const top = Math.max(0, ...lane.lines.filter((line) => bound.has(line.name)).map((line) => bound.get(line.name)));
  const largest = Math.max(0, ...lane.lines.flatMap((line) => line.v.map((value) => value || 0)));
  // A cap that is far above all that was used would press the lines to the floor.
  const range = lane.log ? logRange : (plot, low, high) => fromZero(plot, low, top && top < 4 * largest ? Math.max(high, top) : high);
  const options = (width) => ({
    width, height: 150, series, bands, cursor: { ...cursor, dataIdx: nearest(Math.ceil(8 / step)) },
    legend: { live: true, markers: { width: 3 } }, padding: [8, 12, 0, 0],
    scales: { x: timeScale, y: { distr: lane.log ? 3 : 1, range } },
    axes: axes(lane.unit, timeAxis, lane.log, lanesGutter),
    hooks: timeHooks({ draw: [
      (plot) => marked.forEach(([index, stroke]) => { if (plot.series[index].show) crosses(plot, index, stroke); }),
      (plot) => lane.lines.forEach((line) => { if (bound.has(line.name)) drawBound(plot, bound.get(line.name), colors[line.c % colors.length]); }),
    ] }),
  });
  const note = lane.note + (lane.more ? `; ${lane.more} smaller ones are in the CSV alone` : "");
  const plot = addTimed(parent, lane.title, note, options, values);
  // The lower edge of a band is no line of its own.
  const rows = plot.root.querySelectorAll(".u-legend .u-series");
  edges.forEach((index) => { rows[index].hidden = true; });
}

// The places of samples that have no neighbour, of which a line would show nothing.
function alone(plot, index) {
  const values = plot.data[index];
  const found = [];
  let [last, candidate] = [null, null];
  values.forEach((value, place) => {
    if (value === undefined) return;
    if (value === null) {
      if (candidate !== null) found.push(candidate);
      candidate = null;
    } else {
      candidate = last === null ? place : null;
    }
    last = value;
  });
  if (candidate !== null) found.push(candidate);
  return found;
}

function drawBound(plot, value, stroke) {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(value, "y", true);
  if (!(y >= bbox.top && y <= bbox.top + bbox.height)) return;
  ctx.save();
  ctx.strokeStyle = faded(stroke, 0.8);
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = Math.max(data.grid[1], (view.max - view.min) / 200) * (event.shiftKey ? 10 : 1);
  const middle = at === null ? (view.min + view.max) / 2 : at;
  const does = {
    ArrowLeft: () => moveTo(middle - step), ArrowRight: () => moveTo(middle + step),
    Home: () => moveTo(view.min), End: () => moveTo(view.max),
    PageUp: () => pan(-0.5), PageDown: () => pan(0.5),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(...data.range), Escape: () => show(...data.range),
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

function timeline() {
  const parent = document.getElementById("lanes");
  parent.replaceChildren();
  addRows(parent);
  for (const lane of data.lanes) addLane(parent, lane);
}

function listenToView() {
  const toolbar = document.getElementById("lanes-toolbar");
  toolbar.hidden = false;
  const does = { in: () => zoom(0.5), out: () => zoom(2), back: () => pan(-0.5), forth: () => pan(0.5), all: () => show(...data.range) };
  toolbar.addEventListener("click", (event) => { const name = event.target.dataset.do; if (name) does[name](); });
  document.getElementById("lanes").addEventListener("keydown", onKey);
  const latencies = document.getElementById("latency-charts");
  if (latencies) latencies.addEventListener("keydown", onKey);
  // The times of the table of events move the cursor.
  for (const row of document.querySelectorAll("tr[data-t]")) {
    const cell = row.querySelector(".t");
    const button = element("button", { type: "button", title: "Show in the timeline" }, cell.textContent);
    button.addEventListener("click", () => {
      const t = Number(row.dataset.t);
      if (t < view.min || t > view.max) show(...data.range);
      moveTo(t);
      document.getElementById("timeline").scrollIntoView();
    });
    cell.replaceChildren(button);
  }
}
