// The usage page: it shows what a tenant used and what it holds now. It asks the server every two seconds while it is
// visible.
import { getJson, ServerError } from "./api.js";
import { $, element } from "./dom.js";
import { Plot } from "./plot.js";

const POLL_MS = 2000;
const PLOTS = [
  ["Slots in use", "", [""], (now) => [now.slots_now]],
  ["Requests waiting", "", [""], (now) => [now.waiting_now]],
  ["KV pages held", "", [""], (now) => [now.kv_pages_now]],
  ["First token", "ms", ["p50", "p99"], (now) => [now.ttft_ms.p50 || null, now.ttft_ms.p99 || null]],
  ["Each token", "ms", ["p50", "p99"], (now) => [now.decode_ms.p50 || null, now.decode_ms.p99 || null]],
];
const TOTALS = [
  ["Requests", "requests"],
  ["Prompt tokens", "prompt_tokens"],
  ["Of these cached", "cached_tokens"],
  ["Generated tokens", "completion_tokens"],
];
const COLUMNS = ["day", "model", "finish_reason", "requests", "prompt_tokens", "cached_tokens", "completion_tokens"];

let timer = 0;
let plots = [];

function startPlots() {
  plots = PLOTS.map(([title, unit, names]) => new Plot(title, unit, names, POLL_MS / 1000));
  $("plots").replaceChildren(...plots.map((plot) => plot.figure));
}

function showUsage(usage) {
  $("totals").replaceChildren(
    ...TOTALS.map(([name, key]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, usage[key].toLocaleString("en"))),
    ),
  );
  PLOTS.forEach(([, , , values], i) => plots[i].add(values(usage.since_start)));
  const isNumber = (name) => name === "requests" || name.endsWith("_tokens");
  const cell = (tag, name, text) => element(tag, { className: isNumber(name) ? "number" : "" }, text);
  const textOf = (value) => (typeof value === "number" ? value.toLocaleString("en") : String(value));
  const head = element("tr", {}, ...COLUMNS.map((name) => cell("th", name, name.replaceAll("_", " "))));
  const rows = usage.by_day.map((day) => element("tr", {}, ...COLUMNS.map((name) => cell("td", name, textOf(day[name])))));
  $("days").replaceChildren(...(rows.length > 0 ? [head, ...rows] : []));
  $("no-days").hidden = rows.length > 0;
}

// Admins choose among all tenants; other users see only their own.
async function loadTenants() {
  let ids = [];
  try {
    ids = (await getJson("v1/tenants")).data.map(({ id }) => id);
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 403) throw error;
  }
  const chosen = $("tenant").value;
  $("tenant").replaceChildren(...ids.map((id) => new Option(id)));
  if (ids.includes(chosen)) $("tenant").value = chosen;
  $("tenant-label").hidden = ids.length === 0;
}

async function poll() {
  const id = $("tenant").value || "me";
  try {
    const usage = await getJson(`v1/tenants/${encodeURIComponent(id)}/usage`);
    if (id === ($("tenant").value || "me")) showUsage(usage);
    $("usage-error").hidden = true;
  } catch (error) {
    $("usage-error").textContent = error.message;
    $("usage-error").hidden = false;
  }
}

async function pollOn() {
  const mine = timer;
  if (document.visibilityState === "visible") await poll();
  if (timer === mine) timer = setTimeout(pollOn, POLL_MS);
}

export async function enterUsage() {
  leaveUsage();
  startPlots();
  try {
    await loadTenants();
  } catch (error) {
    $("usage-error").textContent = error.message;
    $("usage-error").hidden = false;
  }
  if (location.hash === "#usage" && timer === 0) timer = setTimeout(pollOn, 0);
}

export function leaveUsage() {
  clearTimeout(timer);
  timer = 0;
}

export function startUsage() {
  $("tenant").addEventListener("change", () => {
    startPlots();
    poll();
  });
}
