// Saves chats as files: JSON, which this page can read again, and Markdown, for reading.
import { answerAsMarkdown, callsOf, resultsOf } from "./calls.js";
import { element } from "./dom.js";
import { newChat } from "./store.js";

const FORMAT = "zinc_rt.chats";
const MOST_NAME = 256; // the most characters of a model's name

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const fileName = (title, ending) => `${title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "chat"}.${ending}`;

export function chatsAsJson(chats) {
  const kept = chats.filter((chat) => chat.messages.length > 0).map(chatAsJson);
  return JSON.stringify({ format: FORMAT, version: 1, chats: kept }, null, 1);
}

function chatAsJson({ title, changed, model, messages }) {
  return { title, changed, model, messages: messages.map(({ drafts, ...message }) => message) };
}

export function chatAsMarkdown(chat) {
  const part = (message) =>
    message.role === "user"
      ? `## You\n\n${message.content}\n`
      : `## Answer\n\n${answerAsMarkdown(message, resultsOf(chat, message))}\n`;
  const shown = chat.messages.filter((m) => m.role !== "tool" && (m.content || callsOf(m).length > 0));
  return `# ${chat.title}\n\n${shown.map(part).join("\n")}`;
}

export const exportJson = (chats, title) => download(fileName(title, "json"), "application/json", chatsAsJson(chats));
export const exportMarkdown = (chat) => download(fileName(chat.title, "md"), "text/markdown", chatAsMarkdown(chat));

// Returns the chats of a file, with other ids. Throws with the reason if the file was not written by this page.
export function chatsOfJson(text) {
  let file = null;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  if (file?.format !== FORMAT || !Array.isArray(file.chats)) throw new Error("it was not exported by this page");
  return file.chats.map((chat, i) => {
    const messages = Array.isArray(chat?.messages) ? chat.messages : null;
    const isGood = messages?.every((m) => ["user", "assistant", "tool"].includes(m?.role) && typeof m.content === "string");
    if (!isGood) throw new Error(`chat ${i + 1} has no list of messages with role and content`);
    const kept = messages.map(messageOf);
    kept.forEach((message, k) => checkCalls(message, kept.slice(0, k), `chat ${i + 1}, message ${k + 1}`));
    const model = typeof chat.model === "string" ? chat.model.slice(0, MOST_NAME) : undefined;
    return { ...newChat(), title: String(chat.title ?? "Imported chat").slice(0, 200), model, messages: kept };
  });
}

function messageOf({ role, content, reasoning, stats, model, dropped, tool_calls, tool_call_id }) {
  return {
    role,
    content,
    ...(role === "tool" && { tool_call_id }),
    ...(typeof reasoning === "string" && { reasoning }),
    ...(dropped === true && { dropped }),
    ...(role === "assistant" && { stats: numbersOf(stats) }),
    ...(role === "assistant" && typeof model === "string" && { model: model.slice(0, MOST_NAME) }),
    ...(role === "assistant" && tool_calls != null && { tool_calls }),
  };
}

const callOf = ({ id, function: { name, arguments: text } }) => ({ id, type: "function", function: { name, arguments: text } });

// Checks that calls are complete, and that a result comes after the call that it answers.
function checkCalls(message, before, at) {
  const isCall = (c) => [c?.id, c?.function?.name, c?.function?.arguments].every((text) => typeof text === "string");
  if (message.tool_calls && !(Array.isArray(message.tool_calls) && message.tool_calls.every(isCall)))
    throw new Error(`${at} has calls without id, name or arguments`);
  if (message.tool_calls) message.tool_calls = message.tool_calls.map(callOf);
  const asker = before.findLast((m) => m.role !== "tool");
  if (message.role === "tool" && !callsOf(asker ?? {}).some((call) => call.id === message.tool_call_id))
    throw new Error(`${at} is the result of no call`);
}

function numbersOf(stats) {
  const kept = Object.entries(stats ?? {}).filter(([, value]) => Number.isFinite(value));
  if (typeof stats?.finish === "string") kept.push(["finish", stats.finish.slice(0, 40)]);
  return Object.fromEntries(kept);
}
