// Sends requests to the server's paths, with the API key that the user entered, and names what can go wrong. The server is
// the one that this page comes from, or an engine in the page (local/).
const KEY = "zinc_rt.key";

export class ServerError extends Error {
  // `cause` is one of these: gone (no answer, or a broken one), key, context (the prompt is too long), busy, model (it
  // is not served, or cannot be served), format, tools (the server refused a field about format or tools), other.
  constructor(status, message, cause = "other") {
    super(message);
    this.status = status;
    this.cause = cause;
  }
}

let send = (path, options) => fetch(path, options);
// From now on `to` answers instead: a function of fetch()'s form.
export function sendTo(to) {
  send = to;
}

let onWantsKey = () => {};
export function whenKeyIsWanted(show) {
  onWantsKey = show;
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

const BY_STATUS = { 401: "key", 429: "busy", 503: "busy", 502: "gone", 504: "gone" }; // a proxy sends 502 and 504
const BY_PARAM = [
  [/^model$/, "model"],
  [/^(response_format|structured_outputs)\b/, "format"],
  [/^(tools|tool_choice)\b/, "tools"],
];

function causeOf(status, error) {
  const { code, param } = error ?? {};
  if (code === "context_length_exceeded") return "context";
  return BY_STATUS[status] ?? BY_PARAM.find(([pattern]) => pattern.test(param ?? ""))?.[1] ?? "other";
}

const gone = (message) => new ServerError(0, message, "gone");
// An engine in the page says what is wrong with it, and does not come back by itself.
const refusalOf = ({ words }) => (words ? new ServerError(0, words) : null);

async function request(path, options = {}) {
  const headers = { ...options.headers };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await send(path, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : (refusalOf(error) ?? gone("The server does not answer."));
  });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  let refusal = {};
  try {
    refusal = JSON.parse(text).error;
    message = refusal.message;
  } catch {
    // The body is not one of this server's errors, but for instance a proxy's page. It is shown as it is.
  }
  if (response.status === 401) onWantsKey(Boolean(key));
  throw new ServerError(response.status, `${response.status}: ${message || response.statusText}`, causeOf(response.status, refusal));
}

export async function getJson(path) {
  return (await request(path)).json();
}

// Resolves when the server answers again. tell(s) is called each second; s is the number of seconds until the next try.
export async function waitForServer(signal, tell) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 15)) {
    for (let left = wait; left > 0; --left) {
      tell(left);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      signal.throwIfAborted();
    }
    try {
      if ((await send("livez", { signal })).ok) return;
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
  }
}

// Yields the parsed events of a streamed answer. It ends with the stream, and throws if the stream breaks off or
// reports an error.
export async function* streamEvents(path, body, signal) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : (refusalOf(error) ?? gone("The answer broke off."));
    });
    if (done) throw gone("The answer broke off.");
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart())
        .join("\n");
      if (data === "[DONE]") return;
      if (!data) continue;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new ServerError(0, parsed.error.message, causeOf(0, parsed.error));
      yield parsed;
    }
  }
}
