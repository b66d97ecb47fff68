// Gets one answer from the server: sends the request, reads its events, and handles failures.
import { streamEvents, waitForServer } from "./api.js";
import { addCallPieces, callsOf } from "./calls.js";
import { requestFields, systemMessages, usesDefaultLength } from "./settings.js";

// Who else sees each request before it is sent, and may change it, and each of its events.
let watcher = { asks() {}, hears() {} };
export function watchAnswers(by) {
  watcher = by;
}

// Returns the messages of a chat that are sent to the model.
export function history(chat, goesOn) {
  const messages = goesOn ? chat.messages : chat.messages.slice(0, -1);
  return messages.filter((m) => (m.content || m.role === "tool" || callsOf(m).length > 0) && !m.dropped).map(sent);
}

// Returns a message as it is sent. Reasoning is sent only if tool calls follow it, because the model then continues
// from it.
function sent({ role, content, reasoning, tool_calls, tool_call_id }) {
  if (role === "tool") return { role, tool_call_id, content };
  if (!tool_calls) return { role, content };
  return { role, content, tool_calls, ...(reasoning && { reasoning_content: reasoning }) };
}

async function attempt(chat, message, body, signal, changed) {
  const { stats } = message;
  const start = performance.now();
  watcher.asks(message, body);
  for await (const event of streamEvents("v1/chat/completions", body, signal)) {
    const choice = event.choices?.[0];
    const delta = choice?.delta ?? {};
    const { reasoning_content: reasoning = "", tool_calls: calls = [] } = delta;
    const content = delta.content ?? "";
    if ((content || reasoning || calls.length > 0) && stats.ttft_ms == null) stats.ttft_ms = performance.now() - start;
    message.content += content;
    addCallPieces(message, calls);
    if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
    if (choice?.finish_reason) stats.finish = choice.finish_reason;
    if (event.usage) {
      stats.tokens = (stats.before ?? 0) + event.usage.completion_tokens;
      stats.context = event.usage.total_tokens;
    }
    watcher.hears(message, event);
    if (event.timings) stats.tokens_per_s = event.timings.decode_tokens_per_s;
    changed();
  }
}

// Requests an answer and fills it into the chat's last message. `goesOn`: the answer continues the text that the
// message already has. Returns the cause if the answer has finally failed, or null.
export async function fetchAnswer(chat, model, goesOn, signal, changed) {
  const message = chat.messages.at(-1);
  const fields = requestFields(model, { isBehindResult: chat.messages.at(-2)?.role === "tool", goesOn });
  let isBehind = goesOn;
  for (;;) {
    const body = {
      model: chat.model,
      messages: [...systemMessages(), ...history(chat, isBehind)],
      stream: true,
      stream_options: { include_usage: true },
      timings: true,
      ...fields,
    };
    if (isBehind) body.continue_final_message = true;
    message.stats = { before: isBehind ? message.stats?.tokens : 0 };
    try {
      await attempt(chat, message, body, signal, changed);
      return null;
    } catch (error) {
      if (error.name === "AbortError") return stopped(message);
      const cause = error.cause ?? "other";
      if (cause === "context" && usesDefaultLength() && fields.max_tokens) {
        delete fields.max_tokens; // the prompt may fit if less room is kept for the answer
        continue;
      }
      const words = cause === "context" ? `This chat is longer than the model's context.\n${error.message}` : error.message;
      message.error = { cause, text: words };
      if (cause !== "gone") return cause;
      try {
        await waitForServer(signal, (s) => {
          message.error = { cause, text: `${error.message} Trying again in ${s} s.` };
          changed();
        });
      } catch {
        return stopped(message);
      }
      delete message.error;
      isBehind = Boolean(message.content) && !message.format && callsOf(message).length === 0;
      if (!isBehind) clear(message);
      changed();
    }
  }
}

function clear(message) {
  message.content = "";
  delete message.reasoning;
  delete message.tool_calls;
}

function stopped(message) {
  delete message.error;
  message.stats.finish = "stopped";
  return null;
}
