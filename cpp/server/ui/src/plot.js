// A plot of the last minutes as SVG: one or two lines over the same scale, from zero.
import { element } from "./dom.js";

const N_SAMPLES = 150;
const WIDTH = 300;
const HEIGHT = 100;

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const shown = (value) => (value == null ? "none" : value >= 100 ? Math.round(value) : Number(value.toFixed(1)));

export class Plot {
  // `names` of its lines; one line has no name of its own.
  constructor(title, names = [""]) {
    this.names = names;
    this.samples = names.map(() => []);
    this.now = element("span", { className: "now" });
    this.paths = names.map((_, i) => svg("path", { class: `line${i}` }));
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.picture.append(svg("path", { class: "axis", d: `M0 ${HEIGHT - 1}H${WIDTH}` }), ...this.paths);
    this.title = title;
    this.figure = element("figure", {}, element("figcaption", {}, title, this.now), this.picture);
  }

  // One value a line; null: none yet.
  add(values) {
    this.samples.forEach((line, i) => {
      line.push(values[i] ?? null);
      if (line.length > N_SAMPLES) line.shift();
    });
    const top = Math.max(1e-9, ...this.samples.flat().map((value) => value ?? 0));
    this.samples.forEach((line, i) => {
      let path = "";
      line.forEach((value, k) => {
        if (value == null) return;
        const x = WIDTH - ((line.length - 1 - k) * WIDTH) / (N_SAMPLES - 1);
        const y = HEIGHT - 1 - (value / top) * (HEIGHT - 4);
        path += `${path === "" || line[k - 1] == null ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
      });
      this.paths[i].setAttribute("d", path);
    });
    const text = this.names.map((name, i) => `${name} ${shown(values[i])}`.trim()).join(" · ");
    this.now.textContent = `${text} (top ${shown(top)})`;
    this.picture.setAttribute("aria-label", `${this.title}: ${this.now.textContent}`);
  }
}
