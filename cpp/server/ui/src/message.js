// Shows one message of a chat on the page.
import { answerAsMarkdown, callsOf, callsView } from "./calls.js";
import { copyButton } from "./clipboard.js";
import { element } from "./dom.js";
import { isJsonFormat } from "./format.js";
import { isJson, jsonView } from "./json_view.js";
import { showMarkdown } from "./markdown.js";

const RENDER_MS = 80; // the least time between two renderings, because each parses all of the Markdown
const LONG = 3000; // a user's message with more characters scrolls within itself
const FINISH = { length: "ended at the length limit", stopped: "stopped", tool_calls: "" };

function statsText({ stats, model }) {
  const parts = [];
  if (stats?.tokens) parts.push(`${stats.tokens} tokens`);
  if (stats?.tokens_per_s) parts.push(`${stats.tokens_per_s.toFixed(1)} tokens/s`);
  if (stats?.ttft_ms != null) parts.push(`first after ${Math.round(stats.ttft_ms)} ms`);
  if (stats?.finish && stats.finish !== "stop") parts.push(FINISH[stats.finish] ?? stats.finish);
  if (model && stats?.tokens) parts.push(model);
  return parts.filter(Boolean).join(" · ");
}

const button = (text, onclick, properties) => element("button", { type: "button", onclick, ...properties }, text);

function userView(message, does) {
  const view = element("article", { className: "user", ariaLabel: "You" });
  const body = element("div", { className: "body" }, message.content);
  if (message.content.length > LONG) {
    body.classList.add("long");
    body.tabIndex = 0; // so that the keyboard can scroll it
    body.setAttribute("role", "group");
    body.ariaLabel = "Long message";
  }
  const edit = () => {
    const field = element("textarea", { className: "edit", value: message.content, ariaLabel: "Edited message" });
    field.rows = Math.min(12, message.content.split("\n").length + 1);
    const submit = () => {
      const text = field.value.trim();
      if (text && does.canEdit()) does.resend(text);
    };
    const leave = () => (view.replaceChildren(body, actions), actions.querySelector(".edit-button").focus());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") (event.stopPropagation(), leave());
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    });
    const row = element("div", { className: "actions" }, button("Send", submit, { className: "primary" }), button("Cancel", leave));
    view.replaceChildren(field, row);
    field.focus();
  };
  const actions = element("div", { className: "actions" });
  if (message.dropped) actions.append(element("span", { className: "stats" }, "no longer sent"));
  actions.append(copyButton(() => message.content, "Copy message"), button("Edit", edit, { className: "edit-button" }));
  view.append(body, actions);
  view.classList.toggle("dropped", Boolean(message.dropped));
  return { view, edit, update() {} };
}

// More buttons of a finished answer: a function of the message that returns [text, what it does] pairs.
let moreButtons = () => [];
export function addButtons(make) {
  moreButtons = make;
}

// For each cause of an error, the buttons that may resolve it. For other causes there is only "Try again".
const again = (does) => button("Try again", does.regenerate);
const inSettings = (part) => (does) => [button("Show it in the settings", () => does.showSetting(part)), again(does)];
const WAYS_OUT = {
  context: (does) =>
    does.canDrop() ? [button("Drop the oldest turns and try again", does.drop)] : [button("Edit the message", does.editLast)],
  gone: () => [],
  model: (does) => [...(does.canPick() ? [button("Choose another model", does.pickModel)] : []), again(does)],
  format: inSettings("format"),
  tools: inSettings("tools"),
};

// Returns a message's element. Its update() shows changes of the message. `does` has the actions of its buttons; those
// that generate are offered for the last answer only. `results` are the results of its calls.
export function messageView(message, isLast, results, does) {
  if (message.role === "user") return userView(message, does);
  const view = element("article", { className: "assistant", ariaLabel: "Answer" });
  const body = element("div", { className: "body" });
  const reasoning = element("div", {});
  const summary = element("summary", {}, "Thinking");
  const details = element("details", { className: "reasoning", hidden: true }, summary, reasoning);
  const json = jsonView();
  const words = element("span", {});
  const loading = element("div", { className: "loading", hidden: true }, words, element("progress", { ariaLabel: "Loading the model" }));
  const calls = callsView(message, isLast, results, does);
  const error = element("div", { className: "error", hidden: true });
  const stats = element("span", { className: "stats" });
  const actions = element("div", { className: "actions", hidden: true });
  view.append(details, loading, body, calls.view, error, actions);

  const showContent = () => {
    const asJson = message.content && (isJsonFormat(message.format) || (!message.running && isJson(message.content)));
    if (!asJson) return showMarkdown(body, message.content);
    json.show(message.content);
    if (json.view.parentNode !== body) body.replaceChildren(json.view);
  };
  let timer = 0;
  const show = () => {
    timer = 0;
    reasoning.textContent = message.reasoning ?? "";
    details.hidden = !message.reasoning;
    showContent();
    const isWaiting = Boolean(message.running) && !message.content && !message.error && callsOf(message).length === 0;
    body.classList.toggle("waiting", isWaiting && !message.waitsFor);
    loading.hidden = !isWaiting || !message.waitsFor;
    words.textContent = message.waitsFor ?? "";
    calls.update();
    view.classList.toggle("dropped", Boolean(message.dropped));
    view.ariaBusy = String(Boolean(message.running));
    const wrong = typeof message.error === "string" ? { cause: "other", text: message.error } : message.error;
    error.hidden = !wrong;
    if (wrong) {
      error.replaceChildren(element("p", {}, wrong.text));
      if (isLast && !message.running) error.append(...(WAYS_OUT[wrong.cause]?.(does) ?? [again(does)]));
    }
    stats.textContent = statsText(message);
    actions.hidden = Boolean(message.running);
    const buttons = [];
    if (message.content || callsOf(message).length > 0)
      buttons.push(copyButton(() => answerAsMarkdown(message, results), "Copy answer"));
    buttons.push(...calls.buttons());
    if (!message.running) buttons.push(...moreButtons(message).map(([text, does]) => button(text, does)));
    if (isLast && !wrong) buttons.push(button("Regenerate", does.regenerate));
    // An answer in a format would start again instead of going on, and an answer with calls cannot be continued.
    const canGoOn = message.content && !message.format && callsOf(message).length === 0;
    if (isLast && canGoOn && ["length", "stopped"].includes(message.stats?.finish) && !wrong)
      buttons.push(button("Continue", does.goOn, { className: "primary" }));
    actions.replaceChildren(...buttons, stats);
  };
  show();
  return {
    view,
    toResults: calls.goTo,
    update(shown) {
      if (!message.running) {
        clearTimeout(timer);
        show();
        shown();
      } else if (!timer) {
        timer = setTimeout(() => (show(), shown()), RENDER_MS);
      }
    },
  };
}
