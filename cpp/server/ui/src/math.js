// Shows formulas in Markdown: $...$ and \(...\) within a line, $$...$$ and \[...\] on lines of their own. Markdown
// first makes elements of class "math" that hold the TeX as text. After the HTML was cleaned, typeset() replaces them
// by the formulas.
import katex from "katex";

const MOST_KEPT = 300;
const kept = new Map(); // key: the TeX; kept because a growing answer is shown many times a second

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function rule(name, level, start, patterns) {
  return {
    name,
    level,
    start: (text) => {
      const at = text.search(start);
      return at < 0 ? undefined : at;
    },
    tokenizer(text) {
      for (const pattern of patterns) {
        const match = pattern.exec(text);
        if (match) return { type: name, raw: match[0], text: match[1].trim() };
      }
    },
    renderer: ({ text }) => (level === "block" ? `<pre class="math">${escape(text)}</pre>` : `<code class="math">${escape(text)}</code>`),
  };
}

// A dollar begins a formula if no space follows it. It ends the formula if no space comes before it and no digit
// follows. So "$5 and $6" is not a formula.
const INLINE = [/^\$\$([^$\n]+?)\$\$/, /^\$(?!\s)((?:\\.|[^$\\\n])+?)(?<!\s)\$(?!\d)/, /^\\\((.+?)\\\)/s, /^\\\[(.+?)\\\]/s];
const BLOCK = [/^ {0,3}\$\$(.+?)\$\$[ \t]*(?:\n+|$)/s, /^ {0,3}\\\[(.+?)\\\][ \t]*(?:\n+|$)/s];
export const mathRules = [
  rule("mathBlock", "block", /(?:^|\n) {0,3}(?:\$\$|\\\[)/, BLOCK),
  rule("mathInline", "inline", /\$|\\\(|\\\[/, INLINE),
];

function made(tex, displayMode) {
  const name = `${displayMode}${tex}`;
  if (!kept.has(name)) {
    const span = document.createElement("span");
    try {
      katex.render(tex, span, { displayMode, throwOnError: true, trust: false, strict: "ignore", maxSize: 50, maxExpand: 500 });
      for (const picture of span.querySelectorAll("svg[data-width]")) picture.style.width = picture.dataset.width;
    } catch {
      return null; // it is not TeX, or not all of it has arrived yet, so the text stays
    }
    if (displayMode) {
      span.tabIndex = 0; // so that the keyboard can scroll wide formulas
      span.className = "formula";
      span.setAttribute("role", "group");
      span.ariaLabel = "Formula";
    }
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    kept.set(name, span);
  }
  return kept.get(name).cloneNode(true);
}

export function typeset(root) {
  for (const element of root.querySelectorAll(".math")) {
    const formula = made(element.textContent, element.tagName === "PRE");
    if (formula) element.replaceWith(formula);
  }
}
