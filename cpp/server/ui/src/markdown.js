// A model's markdown as safe HTML, its code highlighted. What a model writes is not trusted: only the tags that
// markdown makes pass, no image (its address could carry text away), no style, no script.
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/common";
import { marked } from "marked";

const ALLOWED_TAGS =
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre strong sub sup table tbody td th thead tr ul".split(" ");

marked.use({ gfm: true, breaks: true });
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

export function showMarkdown(into, text) {
  into.replaceChildren(
    DOMPurify.sanitize(marked.parse(text), {
      ALLOWED_TAGS,
      ALLOWED_ATTR: ["href", "class", "align", "start"],
      ALLOWED_URI_REGEXP: /^(https?|mailto):/i,
      RETURN_DOM_FRAGMENT: true,
    }),
  );
  for (const code of into.querySelectorAll("pre code")) {
    const language = /language-(\S+)/.exec(code.className)?.[1];
    if (!hljs.getLanguage(language ?? "")) continue;
    code.innerHTML = hljs.highlight(code.textContent, { language, ignoreIllegals: true }).value;
  }
}
