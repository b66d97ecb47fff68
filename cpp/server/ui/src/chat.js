// The chat page: a list of chats, the open one, and at most one answer under way.
import { getJson, streamEvents } from "./api.js";
import { $, element } from "./dom.js";
import { messageView } from "./message.js";
import { requestFields, startSettings, systemMessages } from "./settings.js";
import { deleteChat, loadChats, newChat, saveChat } from "./store.js";

let chats = [];
let open = null;
let running = null; // {chat, message, abort}
let views = new Map(); // of the open chat's messages

function save(chat) {
  try {
    saveChat(chat);
  } catch (error) {
    const last = chat.messages.at(-1);
    if (last?.role === "assistant") last.error = `This chat could not be kept: ${error.message}`;
  }
}

function showList() {
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
}

function showMessages() {
  views = new Map();
  const last = open.messages.at(-1);
  const made = open.messages.map((message) => {
    const view = messageView(message, message === last ? regenerate : null);
    views.set(message, view);
    return view.view;
  });
  if (made.length === 0) made.push(element("p", { className: "empty" }, "Ask something."));
  $("messages").replaceChildren(...made);
  $("messages").scrollTop = $("messages").scrollHeight;
}

function show(chat) {
  open = chat;
  $("chats").classList.remove("shown");
  $("show-chats").ariaExpanded = "false";
  showList();
  showMessages();
  $("text").focus();
}

function startNew() {
  const empty = chats.find((chat) => chat.messages.length === 0);
  if (!empty) chats.unshift(newChat());
  show(empty ?? chats[0]);
}

function rename(chat) {
  const title = prompt("The chat's name", chat.title)?.trim();
  if (!title) return;
  chat.title = title;
  save(chat);
  showList();
}

function remove(chat) {
  if (!confirm(`Delete "${chat.title}"?`)) return;
  if (running?.chat === chat) running.abort.abort();
  deleteChat(chat);
  chats = chats.filter((other) => other !== chat);
  if (chat === open) startNew();
  else showList();
}

// Shows the answer as it grows, at its end if the reader is there.
function update(chat, message) {
  if (chat !== open) return;
  const box = $("messages");
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  views.get(message)?.update(() => {
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  });
}

async function answer(chat) {
  const messages = chat.messages.filter((m) => m.content && !m.error).map(({ role, content }) => ({ role, content }));
  const message = { role: "assistant", content: "", running: true, stats: {} };
  const start = performance.now();
  running = { chat, message, abort: new AbortController() };
  chat.messages.push(message);
  if (chat === open) showMessages();
  showRunning();
  try {
    const body = {
      model: $("model").value,
      messages: [...systemMessages(), ...messages],
      stream: true,
      stream_options: { include_usage: true },
      timings: true,
      ...requestFields(),
    };
    for await (const event of streamEvents("v1/chat/completions", body, running.abort.signal)) {
      const choice = event.choices?.[0];
      const { content = "", reasoning_content: reasoning = "" } = choice?.delta ?? {};
      if ((content || reasoning) && message.stats.ttft_ms == null) message.stats.ttft_ms = performance.now() - start;
      message.content += content;
      if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
      if (choice?.finish_reason) message.stats.finish = choice.finish_reason;
      if (event.usage) message.stats.tokens = event.usage.completion_tokens;
      if (event.timings) message.stats.tokens_per_s = event.timings.decode_tokens_per_s;
      update(chat, message);
    }
  } catch (error) {
    if (error.name === "AbortError") message.stats.finish = "stopped";
    else message.error = error.message;
  }
  delete message.running;
  running = null;
  showRunning();
  if (chats.includes(chat)) save(chat);
  update(chat, message);
}

function showRunning() {
  $("send").hidden = running !== null;
  $("stop").hidden = running === null;
}

function send() {
  const content = $("text").value.trim();
  if (!content || running) return;
  $("text").value = "";
  fitText();
  if (open.messages.length === 0) open.title = content.slice(0, 60);
  open.messages.push({ role: "user", content });
  save(open);
  chats = [open, ...chats.filter((chat) => chat !== open)];
  showList();
  answer(open);
}

function regenerate() {
  if (running) return;
  open.messages.pop();
  answer(open);
}

function fitText() {
  $("text").style.height = "auto";
  $("text").style.height = `${$("text").scrollHeight + 2}px`;
}

export async function loadModels() {
  const { data } = await getJson("v1/models");
  $("model").replaceChildren(...data.map(({ id }) => new Option(id)));
}

export function startChat() {
  startSettings();
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("text").addEventListener("input", fitText);
  $("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  $("stop").addEventListener("click", () => running?.abort.abort());
  $("new-chat").addEventListener("click", startNew);
  $("show-chats").addEventListener("click", () => {
    $("show-chats").ariaExpanded = String($("chats").classList.toggle("shown"));
  });
  $("show-settings").addEventListener("click", () => {
    $("settings").hidden = !$("settings").hidden;
    $("show-settings").ariaExpanded = String(!$("settings").hidden);
  });
  chats = loadChats();
  if (chats.length > 0) show(chats[0]);
  else startNew();
}
