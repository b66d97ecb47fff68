// The chat page: it shows the open chat's messages and the composer, and runs at most one answer at a time.
import { fetchAnswer } from "./answer.js";
import { callsOf, closeCalls, resultsOf } from "./calls.js";
import { isKept, moveToTop, openChat, save, startChats, startNew } from "./chats.js";
import { $, element } from "./dom.js";
import { formatName } from "./format.js";
import { messageView } from "./message.js";
import { showMeter } from "./meter.js";
import { bindModel, currentModel, hasOthers, loadModels, pickModel, showModel, watchLoading } from "./models.js";
import { closeOverlays, closeSettings, openDialog } from "./panels.js";
import { areSettingsGood, clearRefusals, showRefusal, showSetting, startSettings } from "./settings.js";

let running = null; // {chat, abort}
let views = new Map(); // the elements of the open chat's messages

const mayAsk = () => !running && areSettingsGood();

// Returns what the buttons of a message do.
function deeds(message) {
  const chat = openChat();
  return {
    canEdit: mayAsk,
    resend: (content) => {
      chat.messages.length = chat.messages.indexOf(message);
      submit(chat, content);
    },
    sendResults: (results) => {
      chat.messages.length = chat.messages.indexOf(message) + 1;
      chat.messages.push(...results.map(({ id, content }) => ({ role: "tool", tool_call_id: id, content })));
      goOn(chat);
    },
    regenerate: () => {
      if (!mayAsk()) return;
      chat.messages.pop();
      answer(chat);
    },
    goOn: () => mayAsk() && answer(chat, true),
    canPick: () => hasOthers(chat.model),
    pickModel,
    showSetting,
    canDrop: () => turnsOf(chat).length > 1,
    drop: () => {
      if (!mayAsk()) return;
      dropOldest(chat);
      chat.messages.pop();
      answer(chat);
    },
    editLast,
  };
}

// Returns the indices of the user's messages that are still sent to the model. A turn begins at each.
function turnsOf(chat) {
  return chat.messages.flatMap((m, i) => (m.role === "user" && !m.dropped ? [i] : []));
}

// Marks the older half of the turns as dropped, but never the last turn. The model no longer gets them.
function dropOldest(chat) {
  const turns = turnsOf(chat);
  const end = turns[Math.min(turns.length - 1, Math.ceil(turns.length / 2))];
  for (const message of chat.messages.slice(0, end)) message.dropped = true;
}

function editLast() {
  const last = openChat().messages.findLast((m) => m.role === "user");
  if (!last || running) return;
  views.get(last).edit();
}

function showMessages() {
  const chat = openChat();
  views = new Map();
  const last = chat.messages.at(-1);
  // Results are shown together with the calls that they answer.
  const made = chat.messages.filter((m) => m.role !== "tool").map((message) => {
    const view = messageView(message, message === last, resultsOf(chat, message), deeds(message));
    views.set(message, view);
    return view.view;
  });
  if (made.length === 0) made.push(element("p", { className: "empty" }, "Ask something."));
  $("messages").replaceChildren(...made);
  $("messages").scrollTop = $("messages").scrollHeight;
  showMeter(chat);
}

// Shows the growing answer. If the reader is at the end of the page, it scrolls along.
function update(chat) {
  if (chat !== openChat()) return;
  const box = $("messages");
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  views.get(chat.messages.at(-1))?.update(() => {
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  });
}

async function answer(chat, goesOn = false) {
  if (!goesOn) chat.messages.push({ role: "assistant", content: "", stats: {}, format: formatName() || undefined });
  const message = chat.messages.at(-1);
  message.running = true;
  const model = bindModel(chat);
  const { signal } = (running = { chat, abort: new AbortController() }).abort;
  clearRefusals();
  let hadToLoad = false;
  const isWaiting = () => message.running && !message.content && !message.reasoning && callsOf(message).length === 0;
  watchLoading(model, isWaiting, (isLoading) => {
    hadToLoad ||= isLoading;
    message.waitsFor = isLoading ? `Loading ${model}…` : undefined;
    update(chat);
  });
  if (chat === openChat()) showMessages();
  showRunning();
  const cause = await fetchAnswer(chat, currentModel(), goesOn, signal, () => update(chat));
  delete message.running;
  delete message.waitsFor;
  message.model = hasOthers(model) ? model : undefined;
  running = null;
  if (hadToLoad || cause === "model") await loadModels().catch(() => {}); // now the model's context and tier are known
  showRunning();
  if (cause === "key" && !message.content) giveBack(chat);
  if (isKept(chat)) save(chat);
  showRefusal(cause, message.error?.text ?? "");
  if (chat !== openChat()) return;
  if (cause === "key") return showMessages();
  update(chat);
  showMeter(chat);
  // The user will next write a result, unless a message was already begun.
  if (callsOf(message).length > 0 && document.activeElement === $("text") && !$("text").value) views.get(message).toResults();
}

// Called if the server refused a message because a key is missing. Puts the text back where the user wrote it.
function giveBack(chat) {
  chat.messages.pop();
  if (chat.messages.at(-1).role === "tool") return giveBackResults(chat);
  const { content } = chat.messages.pop();
  if (chat !== openChat() || $("text").value) return;
  $("text").value = content;
  fitText();
}

function giveBackResults(chat) {
  const message = chat.messages.findLast((m) => m.role !== "tool");
  const results = chat.messages.splice(chat.messages.indexOf(message) + 1);
  message.drafts = Object.fromEntries(results.map((m) => [m.tool_call_id, m.content]));
}

function showRunning() {
  const hadFocus = [$("send"), $("stop")].includes(document.activeElement) || document.activeElement === document.body;
  $("send").hidden = running !== null;
  $("stop").hidden = running === null;
  if (hadFocus) $("text").focus();
}

function submit(chat, content) {
  if (chat.messages.length === 0) chat.title = content.split("\n")[0].slice(0, 80);
  closeCalls(chat);
  chat.messages.push({ role: "user", content });
  goOn(chat);
}

// Lets the model answer what was appended to the chat's messages.
function goOn(chat) {
  bindModel(chat);
  save(chat);
  moveToTop(chat);
  answer(chat);
  $("text").focus();
}

function send() {
  const content = $("text").value.trim();
  if (!content || !mayAsk()) return;
  $("text").value = "";
  fitText();
  submit(openChat(), content);
}

function fitText() {
  $("text").style.height = "auto";
  $("text").style.height = `${$("text").scrollHeight + 2}px`;
  showMeter(openChat());
}

function onKey(event) {
  const isWriting = event.target.closest?.("input, textarea, select");
  if (document.querySelector("dialog[open]") || event.isComposing) return;
  if (event.key === "Escape") {
    if (closeOverlays()) return;
    if (running) running.abort.abort();
    else if (closeSettings()) $("text").focus();
  } else if (event.altKey && event.code === "KeyN") {
    event.preventDefault();
    startNew();
  } else if (event.ctrlKey || event.metaKey || event.altKey || isWriting) {
    return;
  } else if (event.key === "?") {
    event.preventDefault();
    openDialog($("help"));
  } else if (event.key === "/") {
    event.preventDefault();
    $("text").focus();
  }
}

export function startChat() {
  startSettings();
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("text").addEventListener("input", fitText);
  $("text").addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowUp" && !$("text").value) return event.preventDefault(), editLast();
    if (event.key === "?" && !$("text").value) return event.preventDefault(), openDialog($("help"));
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  });
  $("stop").addEventListener("click", () => running?.abort.abort());
  $("model").addEventListener("shown", () => openChat() && showMeter(openChat()));
  document.addEventListener("keydown", onKey);
  startChats({
    onOpen: () => {
      showModel(openChat());
      showMessages();
      $("text").focus();
    },
    onRemove: (chat) => running?.chat === chat && running.abort.abort(),
  });
}
