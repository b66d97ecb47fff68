// The panel of settings, and the fields of a request that it stands for.
import { $ } from "./dom.js";
import { loadSettings, saveSettings } from "./store.js";

const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];
const FIELDS = ["system", "thinking", ...NUMBERS];
// Answers end here unless the user says otherwise, since a small model may not find an end; "Continue" goes on.
const DEFAULT_LENGTH = 1024;
// As `zinc-rt chat` has them: small models neither repeat themselves nor wander off. index.html shows them.
const DEFAULTS = { temperature: 0.7, min_p: 0.05, repetition_penalty: 1.05 };

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
}

export const usesDefaultLength = () => $("max_tokens").value === "";

export function requestFields(model) {
  const fields = { ...DEFAULTS };
  for (const name of NUMBERS) if ($(name).value !== "") fields[name] = Number($(name).value);
  if (usesDefaultLength()) fields.max_tokens = Math.min(DEFAULT_LENGTH, Math.ceil((model?.max_context ?? Infinity) / 2));
  if ($("thinking").value) fields.chat_template_kwargs = { enable_thinking: $("thinking").value === "on" };
  return fields;
}

export function systemMessages() {
  const content = $("system").value.trim();
  return content ? [{ role: "system", content }] : [];
}
