// Turns a model's Markdown into safe HTML with highlighted code. What a model writes is not trusted. Only the tags that
// Markdown makes are kept. Images are removed, because their addresses could carry text to other servers; so are styles
// and scripts.
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/common";
import { marked } from "marked";
import { copyButton } from "./clipboard.js";
import { element } from "./dom.js";
import { mathRules, typeset } from "./math.js";

const ALLOWED_TAGS = (
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i input li ol p pre strong sub sup table tbody td th thead tr ul"
).split(" ");

marked.use({ gfm: true, breaks: true, extensions: mathRules });
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  } else if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") return node.remove();
    node.setAttribute("disabled", "");
    node.setAttribute("aria-label", node.hasAttribute("checked") ? "done" : "to do");
  }
});

function showCode(pre) {
  const code = pre.querySelector("code");
  const language = /language-(\S+)/.exec(code?.className ?? "")?.[1] ?? "";
  if (code && hljs.getLanguage(language)) {
    code.innerHTML = hljs.highlight(code.textContent, { language, ignoreIllegals: true }).value;
  }
  const head = element("div", { className: "code-head" }, element("span", {}, language), copyButton(() => pre.textContent, "Copy code"));
  const frame = element("div", { className: "code" });
  pre.replaceWith(frame);
  pre.tabIndex = 0; // so that the keyboard can scroll long lines
  pre.setAttribute("role", "group");
  pre.ariaLabel = language ? `Code, ${language}` : "Code";
  frame.append(head, pre);
}

export function showMarkdown(into, text) {
  into.replaceChildren(
    DOMPurify.sanitize(marked.parse(text), {
      ALLOWED_TAGS,
      ALLOWED_ATTR: ["href", "class", "align", "start", "type", "checked", "disabled"],
      // The values of these attributes are not addresses.
      ADD_URI_SAFE_ATTR: ["align", "start", "type", "checked", "disabled"],
      ALLOWED_URI_REGEXP: /^(https?|mailto):/i,
      RETURN_DOM_FRAGMENT: true,
    }),
  );
  typeset(into);
  into.querySelectorAll("pre").forEach(showCode);
  for (const table of into.querySelectorAll("table")) {
    const frame = element("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const box of into.querySelectorAll("li > input, li > p > input")) box.closest("li").classList.add("task");
}
