// The models that are served, the select of them in the page's head, and the chat's choice among them.
import { getJson } from "./api.js";
import { openChat, save } from "./chats.js";
import { $, element } from "./dom.js";

const POLL_MS = 500;

let models = [];
let preferred = ""; // the model with which new chats begin: the last one that was shown

export const currentModel = () => models.find(({ id }) => id === $("model").value) ?? null;
export const isGone = (id) => models.length > 0 && !models.some((model) => model.id === id);
export const hasOthers = (id) => models.some((model) => model.id !== id);

// A model that is not loaded does not report capabilities.
const chats = (model) => model.capabilities?.includes("completion") ?? true;
const GROUPS = [
  ["Loaded", (model) => model.state === "loaded" && chats(model)],
  ["Loaded by the first message", (model) => model.state !== "loaded"],
  ["For embeddings, not for chats", (model) => model.state === "loaded" && !chats(model)],
];

// Returns the name of a chat's model, whether it is still served or not. If the chat has none, returns one that is
// served.
function nameFor(chat) {
  if (chat?.model) return chat.model;
  if (models.some(({ id }) => id === preferred)) return preferred;
  return (models.find(chats) ?? models[0])?.id ?? "";
}

// Fills the select and selects the chat's model, even if it is not served any more.
export function showModel(chat) {
  const name = nameFor(chat);
  const groups = GROUPS.map(([label, isIn]) => [label, models.filter(isIn).map(({ id }) => new Option(id))]);
  if (isGone(name)) groups.push(["Not served any more", [new Option(name)]]);
  const filled = groups.filter(([, options]) => options.length > 0);
  const made = filled.map(([label, options]) => element("optgroup", { label }, ...options));
  // A single group gets no heading if the heading would say nothing.
  const isPlain = filled.length === 1 && filled[0][0] === "Loaded";
  $("model").replaceChildren(...(isPlain ? filled[0][1] : made));
  $("model").value = name;
  if (!isGone(name)) preferred = name;
  showNote(name);
  $("model").dispatchEvent(new Event("shown"));
}

function showNote(name) {
  const gone = isGone(name);
  const box = $("messages");
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  $("model-note").hidden = !gone;
  $("model-note").replaceChildren();
  if (!gone) return;
  const other = nameFor(null);
  const use = () => {
    choose(other);
    $("text").focus();
  };
  $("model-note").append(
    element("span", {}, `The model of this chat, ${name}, is not served any more.`),
    element("button", { type: "button", onclick: use }, `Go on with ${other}`),
  );
  if (isAtEnd) box.scrollTop = box.scrollHeight;
}

function choose(name) {
  const chat = openChat();
  if (chat) chat.model = name;
  if (chat?.messages.length > 0) save(chat);
  showModel(chat);
}

export async function loadModels() {
  ({ data: models } = await getJson("v1/models"));
  showModel(openChat());
}

// Stores the model in the chat that is sent to it, and returns its name.
export function bindModel(chat) {
  return (chat.model ||= nameFor(chat));
}

// Reports whether a model is still being loaded, until it is loaded. The API does not report how far loading is.
export async function watchLoading(id, isWaiting, tell) {
  const known = models.find((model) => model.id === id)?.state;
  if (known && known !== "loaded") tell(true);
  const path = `v1/models/${id.split("/").map(encodeURIComponent).join("/")}`;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (!isWaiting()) break;
    const state = await getJson(path).then((model) => model.state, () => null);
    if (!isWaiting()) break;
    tell(state === "loading" || state === "not_loaded");
    if (state === "loaded" || state === null) break;
  }
}

// Opens the select, if the browser can.
export function pickModel() {
  $("model").focus();
  try {
    $("model").showPicker();
  } catch {
    // The browser cannot open the select, but it has the focus now.
  }
}

export function startModels() {
  $("model").addEventListener("change", () => choose($("model").value));
  $("model").addEventListener("shown", () => ($("model").title = $("model").value));
  document.addEventListener("visibilitychange", () => {
    // Models may have been loaded or unloaded while the page was hidden.
    if (document.visibilityState === "visible" && models.length > 0) loadModels().catch(() => {});
  });
}
