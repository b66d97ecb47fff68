// node browser_engine.mjs PROGRAM.wasm MODEL.gguf OPTIONS < REQUESTS: opens a model with these options (JSON), then answers each
// line of its input, {"path", "method", "body"} or a list of such that run side by side, with a line
// {"status", "content_type", "body"} or a list. First it prints {"info": ...} or {"refused": <message>}. A request with
// "leave_after": n reads n bytes of its answer and leaves; one with "pauses_ms": n waits so long before it reads. With the option "ballast": n, n bytes of the module's memory are
// taken first, so that all else lies above.
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { argv, exit, stderr, stdout } from "node:process";
import { LocalEngine, EngineError } from "../cpp/browser/js/engine.mjs";
import { Wasi } from "../cpp/browser/js/wasi.mjs";

const [program, path, options] = argv.slice(2);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (value) => stdout.write(JSON.stringify(value) + "\n");

const fd = openSync(path, "r");
const { size } = fstatSync(fd);
let most_read = 0;
const file = {
  size,
  read(offset, bytes) {
    most_read = Math.max(most_read, bytes.length);
    return readSync(fd, bytes, 0, bytes.length, offset);
  },
};

async function answer({ path, method = "POST", body, leave_after, pauses_ms }) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const gone = new AbortController();
  const response = await engine.fetch(path, { method, body: text, signal: gone.signal });
  if (pauses_ms !== undefined) await pause(pauses_ms);
  if (leave_after !== undefined) {
    const reader = response.body.getReader();
    for (let n = 0; n < leave_after; ) n += (await reader.read()).value.length;
    gone.abort(new Error("left"));
    return { left: await reader.read().then(String, (error) => error.message) };
  }
  const got = await response.text();
  return { status: response.status, content_type: response.headers.get("Content-Type"), body: got };
}

const { ballast, ...model } = { path: "/model.gguf", ...JSON.parse(options) };
const log = (line) => stderr.write(line + "\n");
const module = await WebAssembly.compile(readFileSync(program));
const files = { "/model.gguf": file };
let engine;
try {
  if (ballast === undefined) {
    engine = await LocalEngine.open({ module, files, model, log });
  } else {
    const wasi = new Wasi(files, log);
    const instance = await WebAssembly.instantiate(module, wasi.imports());
    wasi.start(instance);
    instance.exports.zrt_input(ballast);
    engine = new LocalEngine(instance.exports);
    engine.load(model);
  }
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  say({ refused: error.message, code: error.code });
  exit(0);
}
say({ info: engine.info(), most_read });
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const wanted = JSON.parse(line);
  say(Array.isArray(wanted) ? await Promise.all(wanted.map(answer)) : await answer(wanted));
}
await pause(50); // what a request that left held is freed by then
say({ info: engine.info() });
closeSync(fd);
