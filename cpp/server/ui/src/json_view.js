// Shows JSON indented and coloured, even while it is still incomplete.
import hljs from "highlight.js/lib/common";
import { copyButton } from "./clipboard.js";
import { element } from "./dom.js";

const LONG = 100_000; // a longer text is not coloured
const MOST_INDENT = 40; // deeper levels are not indented further

export function isJson(text) {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// Returns the same tokens, indented. An incomplete text stays incomplete. A text that is not JSON loses only its line
// breaks.
export function pretty(text) {
  let out = "";
  let depth = 0;
  let isOpened = false; // the last token was a bracket; an empty list closes it on the same line
  const line = () => `\n${"  ".repeat(Math.min(depth, MOST_INDENT))}`;
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\]:,]|[^\s{}[\]:,"]+/gs)) {
    if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      out += (isOpened ? "" : line()) + token;
      isOpened = false;
      continue;
    }
    if (isOpened) out += line();
    isOpened = token === "{" || token === "[";
    if (isOpened) ++depth;
    out += token === "," ? token + line() : token === ":" ? ": " : token;
  }
  return out.trimEnd();
}

// Returns a text as a code element. JSON is indented and coloured; other text stays as it is.
export function codeOf(text, asJson) {
  const shown = asJson ? pretty(text) : text;
  const code = element("code", {});
  if (!asJson || shown.length > LONG) code.textContent = shown;
  else code.innerHTML = hljs.highlight(shown, { language: "json", ignoreIllegals: true }).value;
  return code;
}

// Returns a code block that scrolls.
export function codeBlock(text, asJson, label) {
  return element("pre", { tabIndex: 0, role: "group", ariaLabel: label }, codeOf(text, asJson));
}

// Shows an answer that is JSON, with a button that shows it as the model wrote it.
export function jsonView() {
  let isRaw = false;
  let text = "";
  const block = element("div", {});
  const toggle = element("button", { type: "button", className: "copy", ariaPressed: "false" }, "Raw");
  const buttons = element("span", {}, toggle, copyButton(() => text, "Copy JSON"));
  const head = element("div", { className: "code-head" }, element("span", {}, "JSON"), buttons);
  const view = element("div", { className: "code json" }, head, block);
  const show = (now) => {
    text = now;
    block.replaceChildren(codeBlock(text, !isRaw, isRaw ? "JSON as the model wrote it" : "JSON"));
  };
  toggle.addEventListener("click", () => {
    isRaw = !isRaw;
    toggle.ariaPressed = String(isRaw);
    show(text);
  });
  return { view, show };
}
