// The server's paths, with the key that the user gave.
const KEY = "zinc_rt.key";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onWantsKey = () => {};
export function whenKeyIsWanted(show) {
  onWantsKey = show;
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

async function request(path, options = {}) {
  const headers = { ...options.headers };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // not of this server, as a proxy's page: shown as it is
  }
  if (response.status === 401) onWantsKey(message);
  throw new ServerError(response.status, `${response.status}: ${message || response.statusText}`);
}

export async function getJson(path) {
  return (await request(path)).json();
}

// The events of a streamed answer, parsed. Ends with the stream; throws when it breaks off or tells of an error.
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
    const { done, value } = await reader.read();
    if (done) throw new ServerError(0, "the answer broke off");
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
      if (parsed.error) throw new ServerError(0, parsed.error.message);
      yield parsed;
    }
  }
}
