// Writes dist/ of src/ and node_modules/: npm ci && npm run build.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";

const LIBRARIES = { marked: ["LICENSE", "LICENSE.md"], dompurify: ["LICENSE"], "highlight.js": ["LICENSE"] };

const out = process.argv[2] ?? "dist";
await mkdir(out, { recursive: true });
const options = { bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none" };
await build({ ...options, entryPoints: ["src/main.js"], format: "iife", outfile: `${out}/app.js` });
await build({ ...options, entryPoints: ["src/style.css"], outfile: `${out}/style.css` });
await copyFile("src/index.html", `${out}/index.html`);

async function licence(library, files) {
  for (const file of files) {
    const text = await readFile(`node_modules/${library}/${file}`, "utf8").catch(() => null);
    if (text) return text.replaceAll("\r\n", "\n").trim();
  }
  throw new Error(`${library} has no licence file`);
}

let notice = "app.js contains these libraries.\n";
for (const [library, files] of Object.entries(LIBRARIES)) {
  const { version, license } = JSON.parse(await readFile(`node_modules/${library}/package.json`, "utf8"));
  notice += `\n==== ${library} ${version} (${license}) ====\n\n${await licence(library, files)}\n`;
}
await writeFile(`${out}/NOTICE.txt`, notice);
