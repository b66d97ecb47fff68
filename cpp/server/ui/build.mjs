// Writes dist/ from src/ and node_modules/. Run it with: npm ci && npm run build.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";

const LIBRARIES = {
  "@noble/hashes": ["LICENSE"],
  marked: ["LICENSE", "LICENSE.md"],
  dompurify: ["LICENSE"],
  "highlight.js": ["LICENSE"],
  katex: ["LICENSE"],
};
// The fonts for formulas that are bundled. The letters of other fonts are shown in KaTeX_Main.
const FONTS =
  "AMS-Regular Caligraphic-Regular Fraktur-Regular Main-Bold Main-Italic Main-Regular Math-Italic SansSerif-Regular " +
  "Script-Regular Size1-Regular Size2-Regular Size3-Regular Size4-Regular Typewriter-Regular";
const KATEX = "node_modules/katex/dist";

function replaced(text, from, to, n, where = "KaTeX") {
  const parts = text.split(from);
  if (parts.length !== n + 1) throw new Error(`${where} has "${from}" ${parts.length - 1} times, ${n} wanted`);
  return parts.join(to);
}

// The page's policy forbids style attributes, so KaTeX's styles become data attributes, which math.js applies.
const katex = {
  name: "katex",
  setup({ onLoad }) {
    onLoad({ filter: /katex\.mjs$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      contents = replaced(contents, '"style": "width:" + makeEm(width)', '"data-width": makeEm(width)', 2);
      contents = replaced(contents, 'node.setAttribute("style", "text-shadow: 0.02em 0.01em 0.04px");', "", 1);
      return { contents };
    });
    onLoad({ filter: /katex\.css$/ }, async ({ path }) => {
      const contents = (await readFile(path, "utf8")).replace(/@font-face\s*{[^}]*}/g, (face) => {
        const name = /KaTeX_([\w-]+)\.woff2/.exec(face)[1];
        if (!FONTS.split(" ").includes(name)) return "";
        return face.replace(/src:[^;}]*/, `src: url(KaTeX_${name}.woff2) format("woff2")`);
      });
      return { contents, loader: "css" };
    });
  },
};

const out = process.argv[2] ?? "dist";
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const options = { bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none", plugins: [katex] };
await build({ ...options, entryPoints: ["src/main.js"], format: "iife", outfile: `${out}/app.js` });
await build({ ...options, entryPoints: ["src/style.css"], external: ["*.woff2"], outfile: `${out}/style.css` });
await build({ ...options, entryPoints: ["src/local/worker.js"], format: "iife", outfile: `${out}/worker.js` });
await copyFile("src/index.html", `${out}/index.html`);

// The page whose engine is in the page: the same one, with a place to choose a model and without the server's usage. Any
// host may serve it, so its policy is in the file. It may load models from everywhere.
const POLICY =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src *; " +
  "object-src 'none'; base-uri 'none'; form-action 'none'";
let page = await readFile("src/index.html", "utf8");
const [panel, check] = await Promise.all(["panel", "check"].map((name) => readFile(`src/local/${name}.html`, "utf8")));
for (const [from, to] of [
  ['<html lang="en">', '<html lang="en" data-engine="page">'],
  ['<meta charset="utf-8">\n', `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${POLICY}">\n`],
  ['  <nav aria-label="Pages"><a href="#chat">Chat</a> <a href="#usage">Usage</a></nav>\n', ""],
  ['<main id="chat-page">', `${panel}\n<main id="chat-page" hidden>`],
  ["</body>", `${check}</body>`],
])
  page = replaced(page, from, to, 1, "index.html");
await writeFile(`${out}/local.html`, page);
for (const font of FONTS.split(" ")) await copyFile(`${KATEX}/fonts/KaTeX_${font}.woff2`, `${out}/KaTeX_${font}.woff2`);

async function licence(library, files) {
  for (const file of files) {
    const text = await readFile(`node_modules/${library}/${file}`, "utf8").catch(() => null);
    if (text) return text.replaceAll("\r\n", "\n").trim();
  }
  throw new Error(`${library} has no licence file`);
}

let notice = "app.js, style.css and the fonts contain these libraries.\n";
for (const [library, files] of Object.entries(LIBRARIES)) {
  const { version, license } = JSON.parse(await readFile(`node_modules/${library}/package.json`, "utf8"));
  notice += `\n==== ${library} ${version} (${license}) ====\n\n${await licence(library, files)}\n`;
}
await writeFile(`${out}/NOTICE.txt`, notice);
