// The panel of settings, and the request fields that it sets.
import { $ } from "./dom.js";
import { formatField, formatFields, formatProblem, pointAtRefused, showFormat, startFormat } from "./format.js";
import { setPanel } from "./panels.js";
import { loadSettings, saveSettings } from "./store.js";
import { showTools, startTools, toolFields, toolsProblem } from "./tools.js";

const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];
const FORMATS = ["format", "format_schema", "format_regex", "format_grammar"];
const FIELDS = ["system", "thinking", "tools", "tool_choice", ...FORMATS, ...NUMBERS];
// Answers end after this many tokens unless the user sets another limit, because a small model may not find an end.
// "Continue" goes on.
const DEFAULT_LENGTH = 1024;
// The same defaults as in `zinc-rt chat`, with which small models neither repeat themselves nor wander off. index.html
// shows them.
const DEFAULTS = { temperature: 0.7, min_p: 0.05, repetition_penalty: 1.05 };
// The parts of the panel that may be wrong or be refused by the server: where each is, and how its problem is shown.
const CHECKED = {
  tools: { field: () => "tools", problem: toolsProblem, show: showTools, point() {} },
  format: { field: formatField, problem: formatProblem, show: showFormat, point: pointAtRefused },
};

export function startSettings() {
  const settings = loadSettings();
  for (const name of FIELDS) {
    $(name).value = settings[name] ?? "";
    $(name).addEventListener("change", () => {
      try {
        saveSettings(Object.fromEntries(FIELDS.map((field) => [field, $(field).value])));
      } catch {
        // The browser's store is full or forbidden. The settings then last until the page is closed.
      }
    });
  }
  startTools();
  startFormat();
}

// Opens the panel and moves the focus to a part of it: tools or format.
export function showSetting(part) {
  setPanel("settings", true);
  $(CHECKED[part].field()).focus();
  CHECKED[part].point();
}

// Returns whether the settings can be sent. If they cannot, the panel shows why.
export function areSettingsGood() {
  const bad = Object.keys(CHECKED).find((part) => CHECKED[part].problem());
  if (!bad) return true;
  showSetting(bad);
  CHECKED[bad].show(CHECKED[bad].problem());
  return false;
}

// Shows what the server said about a part, beside that part. An empty text removes it.
export function showRefusal(part, text) {
  CHECKED[part]?.show(text.replace(/^400: (\[request\] )?((response_format|structured_outputs)\S*: )?/, ""));
}

export function clearRefusals() {
  for (const part of Object.keys(CHECKED)) showRefusal(part, "");
}

export const usesDefaultLength = () => $("max_tokens").value === "";

// Returns the request fields of the settings. isBehindResult: the model answers the result of a tool. goesOn: the
// request continues an answer, so no format is sent; with one the answer would start again.
export function requestFields(model, { isBehindResult, goesOn }) {
  const fields = { ...DEFAULTS, ...toolFields(isBehindResult), ...(goesOn ? {} : formatFields()) };
  for (const name of NUMBERS) if ($(name).value !== "") fields[name] = Number($(name).value);
  if (usesDefaultLength()) fields.max_tokens = Math.min(DEFAULT_LENGTH, Math.ceil((model?.max_context ?? Infinity) / 2));
  if ($("thinking").value) fields.chat_template_kwargs = { enable_thinking: $("thinking").value === "on" };
  return fields;
}

export function systemMessages() {
  const content = $("system").value.trim();
  return content ? [{ role: "system", content }] : [];
}
