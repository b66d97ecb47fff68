// Makes buttons that copy a text.
import { element } from "./dom.js";

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // A page that another machine serves without TLS has no other access to the clipboard than this old one.
  const field = element("textarea", { value: text, className: "away", ariaLabel: "Text to copy" });
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not allowed");
}

export function copyButton(text, label = "Copy") {
  const button = element("button", { type: "button", className: "copy", ariaLabel: label, title: label }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await copy(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}
