// node --no-warnings run_wasm.mjs PROGRAM.wasm ARGUMENT...: runs a WASI program and exits with its status. The program sees
// the current folder, by its name and as ".", and nothing else.
import { readFileSync } from "node:fs";
import { argv, cwd, env, exit } from "node:process";
import { WASI } from "node:wasi";

const [file, ...args] = argv.slice(2);
const folders = { ".": cwd(), [cwd()]: cwd() };
const wasi = new WASI({ version: "preview1", args: [file, ...args], env, preopens: folders, returnOnExit: true });
const { instance } = await WebAssembly.instantiate(readFileSync(file), wasi.getImportObject());
exit(wasi.start(instance));
