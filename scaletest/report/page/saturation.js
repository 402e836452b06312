// The saturation curve: goodput and latency against load, the interval of the answer, and what the fitted laws say.

function saturation() {
  const parent = document.getElementById("saturation-charts");
  const found = data.saturation;
  if (!parent || !found || !found.points.length) return;
  parent.replaceChildren();
  addCurve(parent, found, found.title, found.y, (point) => point.y, found.fits, false);
  addLatencies(parent, found);
}

const OUTCOMES = [["held", "good"], ["failed", "bad"], ["not counted", "warning"]];

function loadAxis(found) {
  return { values: (plot, splits) => splits.map((value) => count(value) + found.unit) };
}

function drawInterval(plot, found) {
  const ends = [found.capacity, found.failsAt].filter((value) => value !== null).sort((one, other) => one - other);
  if (ends.length < 2) return;
  const { ctx, bbox } = plot;
  const [left, right] = ends.map((value) => plot.valToPos(value, "x", true));
  ctx.save();
  ctx.fillStyle = faded(color("warning"), 0.25);
  ctx.fillRect(left, bbox.top, Math.max(right - left, 2 * devicePixelRatio), bbox.height);
  ctx.restore();
}

function loadRange(found) {
  const loads = found.points.map((point) => point.x);
  const all = [...loads, ...found.fits.map((fit) => fit.at).filter((value) => value !== null && value < 2 * Math.max(...loads))];
  return [0, 1.05 * Math.max(...all)];
}

function curveOptions(width, found, unit, series, log) {
  return {
    width, height: 260, series, padding: [8, 22, 0, 0], legend: { live: true, markers: { width: 3 } },
    cursor: { y: false, dataIdx: nearest(6), drag: { x: true, y: false } },
    scales: { x: { time: false, range: (plot, low, high) => (plot.zoomed ? [low, high] : loadRange(found)) }, y: { distr: log ? 3 : 1, range: log ? logRange : fromZero } },
    axes: axes(unit, loadAxis(found), log),
    hooks: {
      setSelect: [(plot) => { plot.zoomed = plot.select.width > 0; }],
      drawClear: [(plot) => drawInterval(plot, found)],
      draw: [(plot) => found.fits.forEach((fit) => { if (fit.at !== null) verticalLine(plot, fit.at, color("lever"), [5, 4]); })],
    },
  };
}

// Points may share a load, and the fit has loads of its own: each gets a place in the order of loads.
function addCurve(parent, found, title, unit, of, fits, log) {
  const drawn = fits.filter((fit) => fit.points.length);
  const entries = [
    ...found.points.map((point) => ({ x: point.x, group: OUTCOMES.findIndex(([name]) => name === point.outcome), y: of(point) })),
    ...drawn.flatMap((fit, index) => fit.points.map(([x, y]) => ({ x, group: OUTCOMES.length + index, y }))),
  ].filter((entry) => entry.y !== null).sort((one, other) => one.x - other.x);
  const groups = OUTCOMES.length + drawn.length;
  const values = [entries.map((entry) => entry.x), ...Array.from({ length: groups }, (_, group) => entries.map((entry) => (entry.group === group ? entry.y : undefined)))];
  const series = [
    { label: found.parameter, value: (plot, value) => (value == null ? "–" : count(value) + found.unit) },
    ...OUTCOMES.map(([name, level], group) => ({ label: name, stroke: color(level), paths: () => null, points: { show: true, size: 8, fill: color(level) }, value: legendValue(unit, values[1 + group]) })),
    ...drawn.map((fit, index) => ({ label: `fit: ${fit.name}`, stroke: color("lever"), width: 1.5, points: { show: false }, value: legendValue(unit, values[1 + OUTCOMES.length + index]) })),
  ];
  const at = found.fits.filter((fit) => fit.at !== null).map((fit) => `${fit.name} ${count(fit.at)}${found.unit}`);
  const note = `band: between the load that holds and the one that fails${at.length ? `; dashed: ${at.join(", ")}` : ""}`;
  addChart(parent, `${title} against ${found.parameter}`, note, (width) => curveOptions(width, found, unit, series, log), values);
}

function addLatencies(parent, found) {
  const points = found.points.filter((point) => point.p99 !== null || point.operator !== null);
  if (!points.length) return;
  const values = [points.map((point) => point.x), points.map((point) => point.p99), points.map((point) => point.operator)];
  const colors = palette();
  const line = (label, index) => ({ label, stroke: colors[index], paths: () => null, points: { show: true, size: 8, fill: colors[index] }, value: legendValue("seconds", values[1 + index]) });
  const series = [{ label: found.parameter, value: (plot, value) => (value == null ? "–" : count(value) + found.unit) }, line("p99 of the load", 0), line("p99 of operators", 1)];
  addChart(parent, `Latency against ${found.parameter}`, "of good answers", (width) => curveOptions(width, found, "seconds", series, true), values);
}
