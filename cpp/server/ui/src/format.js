// What an answer must look like: text, JSON, or what a schema, an expression or a grammar says.
import { $ } from "./dom.js";
import { placeOf } from "./json_place.js";

function schemaOf(text) {
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("a schema is an object: { … }");
  return value;
}

// The kinds that need a text: its field, what is wrong with it (throws), and what is sent.
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
// Where the words stand that say how the answer must be.
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

// `refusal`: what else is wrong, as the server said.
export function showFormat(refusal = "") {
  for (const { field } of Object.values(TEXTS)) $(`${field}-label`).hidden = kind()?.field !== field;
  const own = formatProblem();
  const isEmpty = kind() && $(kind().field).value.trim() === "";
  const problem = isEmpty ? refusal : own || refusal; // who has not written yet is told nothing
  $("format-problem").textContent = problem;
  $("format-problem").hidden = !problem;
  if (kind()) $(kind().field).ariaInvalid = String(Boolean(problem));
}

// Selects what the refusal that is shown is about: it names a JSON pointer.
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
