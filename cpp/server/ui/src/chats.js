// The list of chats at the side of the page.
import { $, element } from "./dom.js";
import { setPanel } from "./panels.js";
import { deleteChat, loadChats, newChat, saveChat } from "./store.js";
import { chatsOfJson, exportJson, exportMarkdown } from "./transfer.js";

let chats = [];
let open = null;
let onOpen = () => {};
let onRemove = () => {};

export const openChat = () => open;
export const isKept = (chat) => chats.includes(chat);

export function save(chat) {
  try {
    saveChat(chat);
    note("");
  } catch (error) {
    note(`This chat could not be kept: ${error.message}. Export it, or delete others.`);
  }
}

function note(text) {
  $("chats-note").textContent = text;
  $("chats-note").hidden = !text;
}

export function showList() {
  const item = (chat) => {
    const tool = (label, text, onclick) =>
      element("button", { type: "button", className: "tool", ariaLabel: `${label} ${chat.title}`, title: label, onclick }, text);
    const title = element("button", { type: "button", className: "title", title: chat.title, onclick: () => show(chat) });
    title.textContent = chat.title;
    const made = element("li", {}, title, tool("Rename", "✎", () => rename(chat)), tool("Delete", "✕", () => remove(chat)));
    if (chat === open) {
      made.className = "open";
      title.setAttribute("aria-current", "true");
    }
    return made;
  };
  $("chat-list").replaceChildren(...chats.map(item));
  document.title = open?.messages.length ? `${open.title} – zinc_rt` : "zinc_rt";
}

function show(chat) {
  open = chat;
  if ($("shade").hidden === false) setPanel("chats", false);
  showList();
  onOpen();
}

export function startNew() {
  const empty = chats.find((chat) => chat.messages.length === 0);
  if (!empty) chats.unshift(newChat());
  show(empty ?? chats[0]);
}

export function moveToTop(chat) {
  chats = [chat, ...chats.filter((other) => other !== chat)];
  showList();
}

function rename(chat) {
  const title = prompt("The chat's name", chat.title)?.trim();
  if (!title) return;
  chat.title = title.slice(0, 200);
  save(chat);
  showList();
}

function remove(chat) {
  if (!confirm(`Delete "${chat.title}"?`)) return;
  onRemove(chat);
  deleteChat(chat);
  chats = chats.filter((other) => other !== chat);
  if (chat === open) startNew();
  else showList();
}

async function importFile(file) {
  try {
    const added = chatsOfJson(await file.text());
    if (added.length === 0) throw new Error("it has no chats");
    for (const chat of added) saveChat(chat);
    chats.unshift(...added);
    show(added[0]);
    note(`${added.length} ${added.length === 1 ? "chat" : "chats"} imported.`);
  } catch (error) {
    note(`${file.name} was not imported: ${error.message}.`);
  }
}

export function startChats(callbacks) {
  ({ onOpen, onRemove } = callbacks);
  $("new-chat").addEventListener("click", startNew);
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", async () => {
    const [file] = $("import-file").files;
    if (file) await importFile(file);
    $("import-file").value = "";
  });
  $("export-markdown").addEventListener("click", () => exportMarkdown(open));
  $("export-json").addEventListener("click", () => exportJson([open], open.title));
  $("export-all").addEventListener("click", () => exportJson(chats, "zinc_rt-chats"));
  chats = loadChats();
  if (chats.length > 0) show(chats[0]);
  else startNew();
}
