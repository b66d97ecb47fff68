// The worker of a page with an engine: it holds the engine and the files of models. engine_client.js is the other side.
// It gets {call, name, args}, {fetch, path, options} and {abort: number of a call or fetch}. A call gets any number of
// {call, progress} and then {call, result} or {call, error}; a fetch gets {fetch, head}, {fetch, bytes}... and
// {fetch, end} or {fetch, error}. An error is {name, message}.
import { LocalEngine } from "../../../../browser/js/engine.mjs";
import { download, listModels, openModel, removeModel } from "./model_files.js";

let engine = null;
const running = new Map(); // number of a call or fetch -> its AbortController

function readerOf(file) {
  const reader = new FileReaderSync();
  return {
    size: file.size,
    read(at, bytes) {
      const part = new Uint8Array(reader.readAsArrayBuffer(file.slice(at, at + bytes.length)));
      bytes.set(part);
      return part.length;
    },
  };
}

const CALLS = {
  models: () => listModels(),
  remove: ({ key }) => removeModel(key),
  download: ({ url }, signal, tell) => download(url, signal, tell),
  // Opens a file of the user's, or the kept model `key`.
  async open({ file, key, id, max_context }) {
    const model = file ? readerOf(file) : await openModel(key);
    const response = await fetch(new URL("zinc_rt.wasm", self.location));
    if (!response.ok) throw new Error(`The engine could not be fetched: ${response.url} answered ${response.status}.`);
    const module = await WebAssembly.compile(await response.arrayBuffer()); // not every host knows the type of .wasm
    const path = "/model.gguf";
    engine = await LocalEngine.open({ module, files: { [path]: model }, model: { path, id, max_context }, log: console.log });
  },
  info: () => ({ ...engine.info(), memory_bytes: engine.memoryBytes }),
};

async function answerCall(call, name, args, signal) {
  try {
    postMessage({ call, result: await CALLS[name](args, signal, (progress) => postMessage({ call, progress })) });
  } catch (error) {
    postMessage({ call, error: { name: error.name, message: error.message } });
  }
}

async function answerFetch(number, path, options, signal) {
  try {
    const response = await engine.fetch(`/${path}`, { ...options, signal });
    postMessage({ fetch: number, head: { status: response.status, headers: [...response.headers] } });
    for (let reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      postMessage({ fetch: number, bytes: value });
    }
    postMessage({ fetch: number, end: true });
  } catch (error) {
    postMessage({ fetch: number, error: { name: error.name, message: error.message } });
  }
}

onmessage = async ({ data }) => {
  if (data.abort) return running.get(data.abort)?.abort();
  const number = data.call ?? data.fetch;
  const abort = new AbortController();
  running.set(number, abort);
  if (data.call) await answerCall(data.call, data.name, data.args, abort.signal);
  else await answerFetch(data.fetch, data.path, data.options, abort.signal);
  running.delete(number);
};
