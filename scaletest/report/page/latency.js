// Latencies of one step at a time as a heat map with percentiles over it, and the distribution of all steps.

let shownStep = 0;

function latency() {
  const parent = document.getElementById("latency-charts");
  if (!parent) return;
  parent.replaceChildren();
  if (!data.heatmaps.length) { parent.append(element("p", {}, "No good answer was counted.")); return; }
  if (data.heatmaps.length > 1) parent.append(stepChooser());
  const place = element("div", { id: "heatmap", tabindex: "0", role: "group", "aria-label": "Heat map" });
  parent.append(place);
  addHeatmap(place, data.heatmaps[shownStep]);
  addSpectrum(parent);
}

function stepChooser() {
  const select = element("select", { id: "step" });
  data.heatmaps.forEach((map, index) => select.append(new Option(`${map.name} (${count(map.count)} answers)`, index, false, index === shownStep)));
  select.addEventListener("change", () => {
    shownStep = Number(select.value);
    const place = document.getElementById("heatmap");
    for (const plot of timed.filter((item) => place.contains(item.root))) {
      timed.splice(timed.indexOf(plot), 1);
      charts.delete(plot);
      plot.destroy();
    }
    place.replaceChildren();
    addHeatmap(place, data.heatmaps[shownStep]);
  });
  return element("p", { class: "controls" }, element("label", {}, "Step ", select));
}

function rowBottom(row) {
  return 10 ** (row / data.rowsPerDecade) / 1e6;
}

function addHeatmap(parent, map) {
  const [start, step, slots] = map.grid;
  const times = Array.from({ length: slots }, (_, index) => start + step * (index + 0.5));
  const lines = data.quantiles.map(() => new Array(slots).fill(undefined));
  let [low, high, most, last] = [Infinity, 0, 1, null];
  for (const [slot, first, counts, quantiles] of map.columns) {
    // A silence of several columns breaks the lines.
    if (last !== null && slot - last > 4) lines.forEach((line) => line.fill(null, last + 1, slot));
    last = slot;
    low = Math.min(low, first);
    high = Math.max(high, first + counts.length);
    most = Math.max(most, ...counts);
    quantiles.forEach((value, index) => { lines[index][slot] = value; });
  }
  const widths = { p50: 2, p95: 1.2, p99: 1.6, max: 1 };
  const strokes = { p50: color("text"), p95: color("warning"), p99: color("bad"), max: color("muted") };
  const options = (width) => ({
    width, height: 260, cursor: { ...cursor, dataIdx: nearest(3) }, padding: [8, 12, 0, 0],
    legend: { live: true, markers: { width: 3 } },
    scales: { x: timeScale, y: { distr: 3, range: () => logRange(null, rowBottom(low), rowBottom(high)) } },
    axes: axes("seconds", timeAxis, true, lanesGutter),
    series: [
      { label: "time", value: (plot, value) => (value == null ? "" : clock(value, 0.1)) },
      ...data.quantiles.map((name, index) => ({
        label: name, stroke: strokes[name], width: widths[name], dash: name === "max" ? [3, 3] : undefined,
        value: legendValue("seconds", lines[index]), points: { show: true, filter: alone, size: 4 },
      })),
    ],
    hooks: timeHooks({ drawClear: [(plot) => drawCells(plot, map, most)] }),
  });
  addTimed(parent, `Latency of ${map.name}`, "", options, [times, ...lines]);
}

function drawCells(plot, map, most) {
  const { ctx, bbox } = plot;
  const [start, step] = map.grid;
  const hot = color("accent");
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const [slot, first, counts] of map.columns) {
    const left = Math.round(plot.valToPos(start + step * slot, "x", true));
    const right = Math.round(plot.valToPos(start + step * (slot + 1), "x", true));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    counts.forEach((number, index) => {
      if (!number) return;
      const bottom = Math.round(plot.valToPos(rowBottom(first + index), "y", true));
      const top = Math.round(plot.valToPos(rowBottom(first + index + 1), "y", true));
      ctx.fillStyle = faded(hot, 0.1 + 0.75 * (Math.log1p(number) / Math.log1p(most)));
      ctx.fillRect(left, top, right - left, bottom - top);
    });
  }
  ctx.restore();
}

// Shares near 1 are spread out: each step to the right leaves a tenth of the answers.
const SHARES = [0, 0.5, 0.9, 0.95].map((share) => -Math.log10(1 - share)).concat([2, 3, 4, 5, 6]);

function addSpectrum(parent) {
  const colors = palette();
  const tables = data.heatmaps.map((map) => {
    const points = map.spectrum.filter(([, value]) => value > 0);
    return [points.map(([share]) => (share < 1 ? -Math.log10(1 - share) : Math.log10(map.count))), points.map(([, value]) => value)];
  });
  const sorted = tables.map(([xs, ys]) => {
    const order = xs.map((_, index) => index).sort((one, other) => xs[one] - xs[other]);
    return [order.map((index) => xs[index]), order.map((index) => ys[index])];
  });
  const values = uPlot.join(sorted);
  const names = (value) => (value <= 0 ? "0 %" : `${(100 * (1 - 10 ** -value)).toFixed(Math.max(0, Math.ceil(value - 1e-9) - 2))} %`);
  // Only labels that have room: a narrow page has none for both 90 and 95 %.
  const splits = (plot, axis, low, high) => {
    const apart = (46 * (high - low)) / Math.max(1, plot.width - GUTTER);
    const kept = [];
    for (const at of SHARES) if (at >= low && at <= high && (!kept.length || at - kept[kept.length - 1] >= apart)) kept.push(at);
    return kept;
  };
  const options = (width) => ({
    width, height: 220, padding: [8, 28, 0, 0], cursor: { y: false, dataIdx: nearest(3), drag: { x: true, y: false } }, legend: { live: true, markers: { width: 3 } },
    scales: { x: { time: false }, y: { distr: 3, range: logRange } },
    axes: axes("seconds", { values: (plot, values) => values.map(names), splits }, true),
    series: [
      { label: "share of answers", value: (plot, value) => (value == null ? "–" : names(value)) },
      ...data.heatmaps.map((map, index) => ({ label: map.name, stroke: colors[index % colors.length], width: 1.5, spanGaps: true, value: legendValue("seconds", map.spectrum.map(([, value]) => value)) })),
    ],
  });
  addChart(parent, "Distribution over the run", "answers that took no longer", options, values);
}
