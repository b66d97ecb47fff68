// One message of a chat on the page.
import { element } from "./dom.js";
import { showMarkdown } from "./markdown.js";

const RENDER_MS = 80; // markdown is parsed anew each time

function statsText(stats) {
  const parts = [];
  if (stats?.tokens) parts.push(`${stats.tokens} tokens`);
  if (stats?.tokens_per_s) parts.push(`${stats.tokens_per_s.toFixed(1)} tokens/s`);
  if (stats?.ttft_ms != null) parts.push(`first after ${Math.round(stats.ttft_ms)} ms`);
  if (stats?.finish && stats.finish !== "stop") parts.push(stats.finish);
  return parts.join(" · ");
}

// A message's element, with update() for when the message has changed. `regenerate` is given for the last answer alone.
export function messageView(message, regenerate) {
  const view = element("article", { className: message.role, ariaLabel: message.role === "user" ? "You" : "Answer" });
  const body = element("div", { className: "body" });
  if (message.role === "user") {
    body.textContent = message.content;
    view.append(body);
    return { view, update() {} };
  }
  const reasoning = element("div", {});
  const summary = element("summary", {}, "Thinking");
  const details = element("details", { className: "reasoning", hidden: true }, summary, reasoning);
  const error = element("p", { className: "error", hidden: true });
  const stats = element("span", { className: "stats" });
  const actions = element("div", { className: "actions", hidden: true }, stats);
  if (regenerate) actions.prepend(element("button", { type: "button", onclick: regenerate }, "Regenerate"));
  view.append(details, body, error, actions);

  let timer = 0;
  const show = () => {
    timer = 0;
    reasoning.textContent = message.reasoning ?? "";
    details.hidden = !message.reasoning;
    showMarkdown(body, message.content);
    body.classList.toggle("waiting", Boolean(message.running) && !message.content);
    error.textContent = message.error ?? "";
    error.hidden = !message.error;
    stats.textContent = statsText(message.stats);
    actions.hidden = Boolean(message.running);
    view.ariaBusy = String(Boolean(message.running));
  };
  show();
  return {
    view,
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
