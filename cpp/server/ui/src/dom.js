// Helpers for the document.
export const $ = (id) => document.getElementById(id);

// Makes an element, as in element("p", {className: "error"}, "text", child, ...).
export function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
