// Chats as files: JSON that this page reads again, Markdown for people.
import { element } from "./dom.js";
import { newChat } from "./store.js";

const FORMAT = "zinc_rt.chats";

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const fileName = (title, ending) => `${title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "chat"}.${ending}`;

export function chatsAsJson(chats) {
  const kept = chats.filter((chat) => chat.messages.length > 0).map(({ title, changed, messages }) => ({ title, changed, messages }));
  return JSON.stringify({ format: FORMAT, version: 1, chats: kept }, null, 1);
}

export function chatAsMarkdown(chat) {
  const part = ({ role, content }) => `## ${role === "user" ? "You" : "Answer"}\n\n${content}\n`;
  return `# ${chat.title}\n\n${chat.messages.filter((m) => m.content).map(part).join("\n")}`;
}

export const exportJson = (chats, title) => download(fileName(title, "json"), "application/json", chatsAsJson(chats));
export const exportMarkdown = (chat) => download(fileName(chat.title, "md"), "text/markdown", chatAsMarkdown(chat));

// The chats of a file, under new ids. Throws with the reason if it is none of ours.
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
    const isGood = messages?.every((m) => ["user", "assistant"].includes(m?.role) && typeof m.content === "string");
    if (!isGood) throw new Error(`chat ${i + 1} has no list of messages with role and content`);
    const kept = messages.map(({ role, content, reasoning, stats, dropped }) => ({
      role,
      content,
      ...(typeof reasoning === "string" && { reasoning }),
      ...(dropped === true && { dropped }),
      ...(role === "assistant" && { stats: numbersOf(stats) }),
    }));
    return { ...newChat(), title: String(chat.title ?? "Imported chat").slice(0, 200), messages: kept };
  });
}

function numbersOf(stats) {
  const kept = Object.entries(stats ?? {}).filter(([, value]) => Number.isFinite(value));
  if (typeof stats?.finish === "string") kept.push(["finish", stats.finish.slice(0, 40)]);
  return Object.fromEntries(kept);
}
