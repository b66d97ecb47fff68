// Draws a plot of the last minutes as SVG: one or two lines with the same scale, which begins at zero. The labels are
// HTML beside the SVG, because the SVG is stretched.
import { element } from "./dom.js";

const N_SAMPLES = 150;
const WIDTH = 300;
const HEIGHT = 100;

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const shown = (value) => (value == null ? "–" : value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toFixed(1)));

// Returns the smallest of 1, 2, 5, 10, ... that is not below the value.
function roundTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value * (1 - 1e-9)) * power;
}

export class Plot {
  // `names` are the names of its lines; a single line has none. `interval_s` is the time between two samples.
  constructor(title, unit, names, interval_s) {
    this.title = title;
    this.names = names;
    this.samples = names.map(() => []);
    this.now = element("span", { className: "now" });
    this.top = element("span", {}, "1");
    this.paths = names.map((_, i) => svg("path", { class: `line${i}` }));
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    const grid = [0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => svg("path", { class: "axis", d: `M0 ${y}H${WIDTH}` }));
    this.picture.append(...grid, ...this.paths);
    const minutes = Math.round((N_SAMPLES * interval_s) / 60);
    const caption = element("figcaption", {}, element("span", {}, `${title}${unit ? `, ${unit}` : ""}`), this.now);
    const upright = element("div", { className: "y-axis", ariaHidden: "true" }, this.top, element("span", {}, "0"));
    const level = element("div", { className: "x-axis", ariaHidden: "true" }, element("span", {}, `${minutes} min ago`), element("span", {}, "now"));
    this.figure = element("figure", {}, caption, element("div", { className: "plot" }, upright, this.picture, level));
  }

  // Adds one value per line. null means that there is no value yet.
  add(values) {
    this.samples.forEach((line, i) => {
      line.push(values[i] ?? null);
      if (line.length > N_SAMPLES) line.shift();
    });
    const top = roundTop(Math.max(...this.samples.flat().map((value) => value ?? 0)));
    this.samples.forEach((line, i) => {
      let path = "";
      line.forEach((value, k) => {
        if (value == null) return;
        const x = WIDTH - 3 - ((line.length - 1 - k) * WIDTH) / (N_SAMPLES - 1);
        const y = HEIGHT - 1 - (value / top) * (HEIGHT - 3);
        const isAlone = line[k - 1] == null && line[k + 1] == null; // a sample without neighbours is drawn as a dot
        path += `${path === "" || line[k - 1] == null ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}${isAlone ? "h.01" : ""}`;
      });
      this.paths[i].setAttribute("d", path);
    });
    this.top.textContent = shown(top);
    const entries = this.names.map((name, i) => {
      const text = `${name} ${shown(values[i])}`.trim();
      return element("span", { className: name ? `key${i}` : "" }, text);
    });
    this.now.replaceChildren(...entries);
    const text = entries.map((entry) => entry.textContent).join(", ");
    this.picture.setAttribute("aria-label", `${this.title}: ${text}; the scale ends at ${shown(top)}`);
  }
}
