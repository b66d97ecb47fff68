// Shows the card (description) of the chosen model.
import { $, element } from "./dom.js";
import { currentModel, loadModels } from "./models.js";
import { openDialog } from "./panels.js";

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const i = n > 0 ? Math.min(units.length - 1, Math.floor(Math.log2(n) / 10)) : 0;
  return `${(n / 2 ** (10 * i)).toFixed(i === 0 ? 0 : 1)} ${units[i]}`;
}

const count = (n) => n.toLocaleString("en");

function parameters(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)} billion`;
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} million` : count(n);
}

const GROUPS = [
  ["Model", [
    ["Name", (m) => m.name || m.id],
    ["Architecture", (m) => m.architecture],
    ["Parameters", (m) => parameters(m.n_parameters)],
    ["Weights", (m) => `${bytes(m.weight_bytes)} (${Object.keys(m.weight_bytes_by_format).join(", ")})`],
  ]],
  ["Where it runs", [
    ["Tier", (m) => m.tier],
    ["Device", (m) => m.device],
    ["Arithmetic", (m) => m.arithmetic],
    ["Activations", (m) => m.activations],
  ]],
  ["What it can do", [
    ["Tool calls", (m) => m.tool_format ?? "none: it reads no tools"],
    ["Reasoning", (m) => m.reasoning_format || "none"],
  ]],
  ["Context and memory", [
    ["Context here", (m) => `${count(m.max_context)} tokens`],
    ["Context of the model", (m) => `${count(m.context_length)} tokens`],
    ["KV cache", (m) => `${bytes(m.kv_pages * m.kv_page_bytes)} in ${count(m.kv_pages)} pages (${m.kv_dtype})`],
    ["KV cache of a token", (m) => bytes(m.kv_bytes_per_token)],
    ["Slots", (m) => `${m.max_slots} requests at once`],
  ]],
  ["Health", [["State", (m) => (m.health.status === "ok" ? "ok" : `${m.health.bad_logits} requests had no finite logits`)]]],
];

// The rows for a model that is only in the models folder. The server knows nothing but its file.
const NOT_LOADED = [
  ["Model", [
    ["Name", (m) => m.id],
    ["Other names", (m) => m.aliases.join(", ") || "none"],
    ["File", (m) => bytes(m.file_bytes)],
    ["State", (m) => (m.state === "loading" ? "is being loaded" : "is loaded with the first message")],
  ]],
];

async function showCard() {
  if (currentModel()?.state !== "loaded") await loadModels().catch(() => {}); // it may have been loaded meanwhile
  const model = currentModel();
  if (!model) return;
  const row = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value(model))));
  $("card-title").textContent = model.id;
  const groups = model.state === "loaded" ? GROUPS : NOT_LOADED;
  $("card-body").replaceChildren(
    ...groups.flatMap(([title, rows]) => [element("h3", {}, title), element("dl", {}, ...rows.map(row))]),
  );
  openDialog($("card"));
}

export function startCard() {
  $("show-card").addEventListener("click", showCard);
  $("model").addEventListener("shown", () => ($("show-card").disabled = !currentModel()));
}
