// The page's side of worker.js: an engine in a worker. Each opened model gets a worker of its own, so that the memory of the
// one before is free.

const errorOf = ({ name, message }) => Object.assign(new Error(message), { name, words: message });

export class EngineClient {
  #worker = new Worker(new URL("worker.js", document.querySelector("script[src$='app.js']").src));
  #waiting = new Map(); // number -> { hears(data), fails(error) }
  #last = 0;
  #failure = null; // why nothing is answered any more

  constructor() {
    this.#worker.onmessage = ({ data }) => this.#waiting.get(data.call ?? data.fetch)?.hears(data);
    this.#worker.onerror = (event) => this.close(`The engine's worker ended: ${event.message ?? "it could not be loaded"}.`);
  }

  get hasFailed() {
    return this.#failure !== null;
  }

  // Ends the worker. Whoever waits, and whoever asks later, gets an error with this text. name: as of errors; "AbortError"
  // says that the user wanted it.
  close(message = "The engine was closed.", name = "Error") {
    this.#failure ??= errorOf({ name, message });
    this.#worker.terminate();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const one of waiting) one.fails(this.#failure);
  }

  // Calls a function of worker.js. tell gets its progress; `signal` asks it to end.
  call(name, args = {}, { signal, tell = () => {} } = {}) {
    return new Promise((resolve, reject) => {
      const number = this.#ask({ name, args }, "call", signal, {
        hears: ({ progress, result, error }) => {
          if (progress) return tell(progress);
          this.#waiting.delete(number);
          if (error) reject(errorOf(error));
          else resolve(result);
        },
        fails: reject,
      });
    });
  }

  // As the function of that name, for paths without a leading "/".
  fetch(path, { method, body, signal } = {}) {
    return new Promise((resolve, reject) => {
      let controller = null;
      const fails = (error) => (controller ? controller.error(error) : reject(error));
      const number = this.#ask({ path, options: { method, body } }, "fetch", signal, {
        hears: ({ head, bytes, error }) => {
          if (head) {
            const stream = new ReadableStream({
              start: (own) => (controller = own),
              cancel: () => {
                this.#waiting.delete(number);
                this.#worker.postMessage({ abort: number });
              },
            });
            return resolve(new Response(stream, head));
          }
          if (bytes) return controller.enqueue(bytes);
          this.#waiting.delete(number);
          if (error) fails(errorOf(error));
          else controller.close();
        },
        fails,
      });
    });
  }

  #ask(message, kind, signal, waiting) {
    const number = ++this.#last;
    if (this.#failure) {
      waiting.fails(this.#failure);
      return number;
    }
    this.#waiting.set(number, waiting);
    const abort = () => this.#worker.postMessage({ abort: number });
    signal?.addEventListener("abort", abort, { once: true });
    this.#worker.postMessage({ [kind]: number, ...message });
    if (signal?.aborted) abort();
    return number;
  }
}
