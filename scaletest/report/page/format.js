// Numbers, times and colours as the tables of the page write them.

const data = JSON.parse(document.getElementById("data").textContent);

function threeDigits(value) {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function short(value) {
  return value === 0 ? "0" : threeDigits(value).replace(/\.0+$|(\.\d*?)0+$/, "$1");
}

function seconds(value) {
  if (value === 0) return "0 s";
  if (value < 0.9995e-3) return short(value * 1e6) + " µs";
  if (value < 0.9995) return short(value * 1e3) + " ms";
  return value < 99.95 ? short(value) + " s" : clock(value);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return (unit ? short(value) : value.toFixed(0)) + " " + units[unit];
}

function count(value) {
  if (Math.abs(value) >= 1e6) return short(value / 1e6) + " M";
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : short(value);
}

const FORMATS = {
  seconds, bytes, count,
  cores: (value) => short(value),
  share: (value) => short(value * 100) + " %",
  per_second: (value) => count(value) + "/s",
  bytes_per_second: (value) => bytes(value) + "/s",
};

// Minutes and seconds since the run began; decimals where the distance between two labels needs them.
function clock(value, step = 1) {
  const sign = value < 0 ? "-" : "";
  const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const factor = 10 ** digits;
  const rounded = Math.round(Math.abs(value) * factor) / factor;
  const minutes = Math.floor(rounded / 60);
  const rest = (rounded - 60 * minutes).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  if (minutes < 60) return `${sign}${minutes}:${rest}`;
  return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function palette() {
  return color("plots").split(/\s+/);
}

function faded(hex, share) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(", ")}, ${share.toFixed(3)})`;
}
