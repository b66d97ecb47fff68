// An engine in this page (or in node): fetch() answers as `zinc-rt serve` does, by the WebAssembly module zinc_rt.wasm
// (cpp/browser/exports.cpp). Run it in a worker, because a step computes for long and does not let the page draw.
import { Wasi } from "./wasi.mjs";

const HEAD = 1, BODY = 2, END = 3;

// The module's refusal, with the fields of the server's error object.
export class EngineError extends Error {
  constructor({ message, type, param, code }) {
    super(message);
    Object.assign(this, { type, param, code });
  }
}

export class LocalEngine {
  #exports;
  #calls = new Map(); // number -> { head: resolve, failed: reject, controller, forget: removes the listener of its signal }
  #timer = null; // of a step that is due later; null: there is none
  #due = Infinity; // when the timer ends
  // A message to ourselves runs a step that is due now. Browsers delay each of many timers in a row by 4 ms.
  #channel = new MessageChannel();
  #is_posted = false;
  #failure = null; // why no more calls are answered

  // module: a WebAssembly.Module. files: as in wasi.mjs. model: {path, id, options of the model}, the body of the
  // server's POST /v1/models/load; path is a key of `files`. log(line): gets the engine's log.
  // Throws EngineError if the model cannot be opened.
  static async open({ module, files, model, log = () => {} }) {
    const wasi = new Wasi(files, log);
    const instance = await WebAssembly.instantiate(module, wasi.imports());
    wasi.start(instance);
    const engine = new LocalEngine(instance.exports);
    engine.load(model);
    return engine;
  }

  // exports: those of an instance whose WASI was started.
  constructor(exports) {
    this.#exports = exports;
    this.#channel.port1.onmessage = () => this.#run();
    this.#channel.port1.unref?.(); // in node, only a posted message keeps the program running
  }

  // Opens a model in place of the one that is open; open() has called it once. Calls that have not ended get an error.
  // Throws EngineError if it cannot be opened; then none is open.
  load(model) {
    for (const number of [...this.#calls.keys()]) this.#cancel(number, new Error("another model was loaded"));
    const refused = this.#call(() => this.#text(this.#exports.zrt_open(this.#give(JSON.stringify(model))[0])));
    if (refused) throw new EngineError(JSON.parse(refused).error);
  }

  // Returns a Response, as the function of that name does. init: { method, body, signal }; the body is a text.
  fetch(path, { method = "GET", body = "", signal } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const number = this.#call(() => this.#exports.zrt_submit(...this.#give(method, path, body)) >>> 0);
      if (number === 0) return reject(new Error("no model is open"));
      const abort = () => this.#cancel(number, signal.reason);
      signal?.addEventListener("abort", abort, { once: true });
      const forget = () => signal?.removeEventListener("abort", abort);
      this.#calls.set(number, { head: resolve, failed: reject, controller: null, forget });
      this.#run_in(0);
    });
  }

  // Returns {version, arithmetic_version, model, stats}.
  info() {
    return JSON.parse(this.#call(() => this.#text(this.#exports.zrt_info())));
  }

  // The bytes that the module has taken: weights, KV cache and all else.
  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }

  // Ends all calls with an error. The memory is free once nothing refers to the engine.
  close(reason = new Error("the engine was closed")) {
    this.#failure ??= reason;
    clearTimeout(this.#timer);
    this.#channel.port2.close();
    for (const number of [...this.#calls.keys()]) this.#fail(number, this.#failure);
  }

  // Writes texts one after the other into the module's memory. Returns their sizes.
  #give(...texts) {
    const parts = texts.map((text) => new TextEncoder().encode(text));
    const sizes = parts.map((part) => part.length);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    let at = this.#exports.zrt_input(total) >>> 0; // signed, so negative from 2 GiB on
    for (const part of parts) {
      new Uint8Array(this.#exports.memory.buffer, at, part.length).set(part);
      at += part.length;
    }
    return sizes;
  }

  // Copies the bytes that an export returned as address and size.
  #taken(place) {
    const at = Number(place & 0xffffffffn), size = Number(place >> 32n);
    return new Uint8Array(this.#exports.memory.buffer, at, size).slice();
  }
  #text(place) {
    return new TextDecoder().decode(this.#taken(place));
  }

  // Calls the module. If it traps, no later call is answered, because its memory may be in any state.
  #call(work) {
    if (this.#failure) throw this.#failure;
    try {
      return work();
    } catch (error) {
      this.close(new Error(`the engine failed: ${error.message}`, { cause: error }));
      throw this.#failure;
    }
  }

  #cancel(number, reason) {
    if (!this.#calls.has(number)) return;
    if (!this.#failure) this.#call(() => this.#exports.zrt_cancel(number));
    this.#fail(number, reason);
    this.#run_in(0); // another request may have waited for its slot
  }
  #fail(number, reason) {
    const call = this.#ended(number);
    if (call?.controller) call.controller.error(reason);
    else call?.failed(reason);
  }
  #ended(number) {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    call?.forget();
    return call;
  }

  // Sees to it that a step runs in this many ms or earlier. Meanwhile other events of the page or worker happen.
  #run_in(ms) {
    const due = performance.now() + ms;
    if (this.#failure || this.#is_posted || due === Infinity || (this.#timer !== null && due >= this.#due)) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    if (ms > 0) {
      this.#due = due;
      this.#timer = setTimeout(() => this.#run(), Math.min(ms, 1e9));
      return;
    }
    this.#is_posted = true;
    this.#channel.port1.ref?.();
    this.#channel.port2.postMessage(null);
  }

  // Runs a step and hands out what it gave.
  #run() {
    this.#timer = null;
    this.#is_posted = false;
    this.#channel.port1.unref?.();
    if (this.#failure) return;
    try {
      let ms = this.#call(() => this.#exports.zrt_pump());
      for (const number of [...this.#calls.keys()]) if (this.#hand_out(number)) ms = 0;
      this.#run_in(ms);
    } catch (error) {
      this.close(error); // does nothing if #call() has done so
    }
  }

  // Takes the parts of an answer that its reader has room for. Returns whether there were any.
  #hand_out(number) {
    const call = this.#calls.get(number);
    let any = false;
    while (this.#calls.has(number) && (call.controller === null || call.controller.desiredSize > 0)) {
      const piece = this.#call(() => this.#taken(this.#exports.zrt_next(number)));
      if (piece[0] === HEAD) {
        const { status, content_type } = JSON.parse(new TextDecoder().decode(piece.subarray(1)));
        const body = new ReadableStream(
          {
            start: (controller) => (call.controller = controller),
            pull: () => this.#run_in(0),
            cancel: () => this.#cancel(number, new Error("the reader is gone")),
          },
          new ByteLengthQueuingStrategy({ highWaterMark: 65536 }),
        );
        call.head(new Response(body, { status, headers: { "Content-Type": content_type } }));
      } else if (piece[0] === BODY) {
        call.controller.enqueue(piece.subarray(1));
      } else if (piece[0] === END) {
        this.#ended(number);
        call.controller.close();
      } else {
        break;
      }
      any = true;
    }
    return any;
  }
}
