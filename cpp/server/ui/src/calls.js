// Shows the tool calls of an answer and their results. The answer's message keeps the calls as {id, type, function:
// {name, arguments}}. Each result is a message of role "tool" after it.
import { copyButton } from "./clipboard.js";
import { element } from "./dom.js";
import { codeBlock, isJson, pretty } from "./json_view.js";

const NO_RESULT = "No result was given.";
const WAITS = "waits for its result";
const ENDED_EARLY = ["length", "stopped"];

// Adds the pieces of calls that an event of the stream brings. The name comes first, then the arguments in pieces.
export function addCallPieces(message, pieces) {
  for (const { index, id, function: piece } of pieces) {
    message.tool_calls ??= [];
    const call = (message.tool_calls[index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (id) call.id = id;
    call.function.name += piece?.name ?? "";
    call.function.arguments += piece?.arguments ?? "";
  }
}

export const callsOf = (message) => message.tool_calls ?? [];

// Returns the results that follow an answer in the chat.
export function resultsOf(chat, message) {
  const behind = chat.messages.slice(chat.messages.indexOf(message) + 1);
  const end = behind.findIndex((m) => m.role !== "tool");
  return end < 0 ? behind : behind.slice(0, end);
}

// Called when the user writes on without giving results. Appends NO_RESULT as the result of each call that has none,
// because templates need a result for each call.
export function closeCalls(chat) {
  const message = chat.messages.findLast((m) => m.role !== "tool");
  if (!message) return;
  const known = resultsOf(chat, message).map((m) => m.tool_call_id);
  for (const { id } of callsOf(message))
    if (!known.includes(id)) chat.messages.push({ role: "tool", tool_call_id: id, content: NO_RESULT });
}

// Returns a text in a Markdown code fence that is longer than any fence in the text.
function fence(text, language = "") {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const mark = "`".repeat(longest + 1);
  return `${mark}${language}\n${text}\n${mark}`;
}

// Returns an answer as Markdown: its text, its calls and their results.
export function answerAsMarkdown(message, results) {
  const parts = message.content ? [message.content] : [];
  for (const { id, function: called } of callsOf(message)) {
    parts.push(`Call of \`${called.name}\`:\n\n${fence(pretty(called.arguments), "json")}`);
    const result = results.find((m) => m.tool_call_id === id);
    if (result) parts.push(`Result:\n\n${fence(result.content)}`);
  }
  return parts.join("\n\n");
}

function isCut(message, call) {
  return ENDED_EARLY.includes(message.stats?.finish) && !isJson(call.function.arguments);
}

function stateOf(message, call, result) {
  if (result) return "answered";
  if (message.running) return "being written…";
  if (message.error || isCut(message, call)) return "not written to its end";
  return WAITS;
}

// Returns the element that shows an answer's calls. `does.sendResults([{id, content}])` continues the chat with
// results; `does.canEdit()` tells whether the user may edit them.
export function callsView(message, isLast, results, does) {
  const view = element("form", { className: "calls", hidden: true });
  let isEditing = false;

  const resultPart = (call, result, isOpen) => {
    if (isOpen) {
      const field = element("textarea", { rows: 3, required: true, spellcheck: false, className: "code-field" });
      field.value = message.drafts?.[call.id] ?? result?.content ?? "";
      field.dataset.call = call.id;
      field.addEventListener("input", () => ((message.drafts ??= {})[call.id] = field.value));
      return [element("label", { className: "result" }, `Result of ${call.function.name} `, field)];
    }
    if (!result) return [];
    const label = `Result of ${call.function.name}`;
    const block = codeBlock(result.content, isJson(result.content), label);
    return [element("div", { className: "result" }, element("span", {}, "Result"), block)];
  };

  const card = (call, isOpen) => {
    const { name, arguments: text } = call.function;
    const result = results.find((m) => m.tool_call_id === call.id);
    const state = element("span", { className: "call-state" }, stateOf(message, call, result));
    state.classList.toggle("waits", state.textContent === WAITS);
    const copy = copyButton(() => pretty(text), `Copy the arguments of ${name}`);
    const head = element("div", { className: "code-head" }, element("strong", {}, name), state, copy);
    const made = element("div", { className: "code call", role: "group", ariaLabel: `Call of ${name}` }, head);
    made.append(codeBlock(text, true, `Arguments of ${name}`), ...resultPart(call, result, isOpen));
    return made;
  };

  const calls = () => callsOf(message);
  const isWhole = () => !message.running && !message.error && calls().length > 0 && !calls().some((call) => isCut(message, call));
  const word = () => (calls().length === 1 ? "result" : "results");
  const button = (text, onclick) => element("button", { type: "button", onclick }, text);

  const update = () => {
    const isOpen = isEditing || (isLast && isWhole());
    const buttons = isOpen ? [element("button", { className: "primary" }, `Send ${word()}`)] : [];
    if (isEditing) buttons.push(button("Cancel", () => setEditing(false)));
    view.hidden = calls().length === 0;
    view.replaceChildren(...calls().map((call) => card(call, isOpen)), element("div", { className: "actions" }, ...buttons));
  };
  const setEditing = (now) => {
    isEditing = now;
    delete message.drafts;
    update();
    (now ? view.querySelector("textarea") : edit)?.focus();
  };
  const edit = button("", () => does.canEdit() && setEditing(true));
  // Returns the buttons that these calls add to the answer's own.
  const buttons = () => {
    edit.textContent = `Edit ${word()}`;
    return results.length > 0 && isWhole() ? [edit] : [];
  };

  view.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!does.canEdit()) return;
    const fields = [...view.querySelectorAll("textarea")];
    delete message.drafts;
    does.sendResults(fields.map((field) => ({ id: field.dataset.call, content: field.value })));
  });
  view.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) view.requestSubmit();
    if (event.key !== "Escape" || !isEditing) return;
    event.stopPropagation();
    setEditing(false);
  });
  // Moves the focus to the first missing result, and scrolls so that its call is in sight.
  const goTo = () => {
    const field = view.querySelector("textarea");
    field?.focus({ preventScroll: true });
    if (field) view.scrollIntoView({ block: "start" });
  };
  return { view, update, buttons, goTo };
}
