// The panel of settings, and the fields of a request that it stands for.
import { $ } from "./dom.js";
import { formatField, formatFields, formatProblem, pointAtRefused, showFormat, startFormat } from "./format.js";
import { setPanel } from "./panels.js";
import { loadSettings, saveSettings } from "./store.js";
import { showTools, startTools, toolFields, toolsProblem } from "./tools.js";

const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];
const FORMATS = ["format", "format_schema", "format_regex", "format_grammar"];
const FIELDS = ["system", "thinking", "tools", "tool_choice", ...FORMATS, ...NUMBERS];
// Answers end here unless the user says otherwise, since a small model may not find an end; "Continue" goes on.
const DEFAULT_LENGTH = 1024;
// As `zinc-rt chat` has them: small models neither repeat themselves nor wander off. index.html shows them.
const DEFAULTS = { temperature: 0.7, min_p: 0.05, repetition_penalty: 1.05 };
// What may be wrong in the panel, or be refused by the server: where it stands and how it is shown there.
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
        // a full or forbidden store: the fields hold until the page closes
      }
    });
  }
  startTools();
  startFormat();
}

// Opens the panel where a part of it stands: tools or format.
export function showSetting(part) {
  setPanel("settings", true);
  $(CHECKED[part].field()).focus();
  CHECKED[part].point();
}

// Whether the settings can be sent; else the panel shows what cannot.
export function areSettingsGood() {
  const bad = Object.keys(CHECKED).find((part) => CHECKED[part].problem());
  if (!bad) return true;
  showSetting(bad);
  CHECKED[bad].show(CHECKED[bad].problem());
  return false;
}

// What the server said of a part, shown where the part stands; "" takes it away.
export function showRefusal(part, text) {
  CHECKED[part]?.show(text.replace(/^400: (\[request\] )?((response_format|structured_outputs)\S*: )?/, ""));
}

export function clearRefusals() {
  for (const part of Object.keys(CHECKED)) showRefusal(part, "");
}

export const usesDefaultLength = () => $("max_tokens").value === "";

// isBehindResult: of a tool. goesOn: behind what an answer has, which a format would begin anew.
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
