// The settings of the answer's format: text, JSON, or what a schema, an expression or a grammar allows.
import { $ } from "./dom.js";
import { placeOf } from "./json_place.js";

function schemaOf(text) {
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("a schema is an object: { … }");
  return value;
}

// The formats that need a text from the user: the field of the text, a function that throws if the text is wrong, and
// what is sent.
const TEXTS = {
  json_schema: {
    field: "format_schema",
    check: schemaOf,
    send: (text) => ({ response_format: { type: "json_schema", json_schema: { name: "answer", schema: schemaOf(text) } } }),
  },
  regex: { field: "format_regex", check() {}, send: (regex) => ({ structured_outputs: { regex } }) },
  grammar: { field: "format_grammar", check() {}, send: (grammar) => ({ structured_outputs: { grammar } }) },
};

const kind = () => TEXTS[$("format").value];
export const formatName = () => $("format").value;
export const isJsonFormat = (name) => name === "json_object" || name === "json_schema";
// Returns the id of the field that holds the format's text, or of the format's select.
export const formatField = () => kind()?.field ?? "format";

export function formatProblem() {
  if (!kind()) return "";
  const text = $(kind().field).value;
  if (text.trim() === "") return "It is empty.";
  try {
    kind().check(text);
    return "";
  } catch (error) {
    return error instanceof SyntaxError ? `This is no JSON: ${error.message}` : `${error.message}.`;
  }
}

export function formatFields() {
  if ($("format").value === "json_object") return { response_format: { type: "json_object" } };
  return kind() && !formatProblem() ? kind().send($(kind().field).value) : {};
}

// Shows the fields of the chosen format, and what is wrong. `refusal` is what the server said about it.
export function showFormat(refusal = "") {
  for (const { field } of Object.values(TEXTS)) $(`${field}-label`).hidden = kind()?.field !== field;
  const own = formatProblem();
  const isEmpty = kind() && $(kind().field).value.trim() === "";
  const problem = isEmpty ? refusal : own || refusal; // no problem is shown to a user who has not written anything yet
  $("format-problem").textContent = problem;
  $("format-problem").hidden = !problem;
  if (kind()) $(kind().field).ariaInvalid = String(Boolean(problem));
}

// Selects the part of the text that the shown refusal is about. The refusal names it by a JSON pointer.
export function pointAtRefused() {
  const [, pointer] = /\[schema\] (\/\S*):/.exec($("format-problem").textContent) ?? [];
  const field = $(formatField());
  const place = pointer && $("format").value === "json_schema" && placeOf(field.value, pointer);
  if (place) field.setSelectionRange(...place);
}

export function startFormat() {
  $("format").addEventListener("change", () => showFormat());
  for (const { field } of Object.values(TEXTS)) $(field).addEventListener("input", () => showFormat());
  showFormat();
}
