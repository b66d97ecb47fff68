// Compares an answer of this page's engine with a server's: the same request, and the hash of each token's logits.
import { $ } from "../dom.js";
import { addButtons } from "../message.js";
import { openDialog } from "../panels.js";

// message -> {body, model, hashes}: what was asked, a promise of the card of the model that answers, and the hashes of the
// answer's tokens. An answer that was continued has those of its last part.
const proofs = new WeakMap();
let chosen = null; // the proof that the dialog is about

// Makes a request one that can be asked again.
export function noteRequest(message, body, model) {
  body.seed ??= Math.floor(Math.random() * 2 ** 31);
  body.return_logits_hash = true;
  proofs.set(message, { body, model, hashes: [] });
}

export function noteAnswer(message, event) {
  proofs.get(message)?.hashes.push(...(event.choices?.[0]?.logits_hash ?? []));
}

async function ask(base, path, key, options = {}) {
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  const response = await fetch(new URL(path, base), { ...options, headers }).catch(() => {
    throw new Error(`${base.host} does not answer, or does not let this page read its answers: start it with --cors-origin ${location.origin}`);
  });
  const text = await response.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // It is no zinc_rt server, or a proxy's page is before it.
  }
  if (response.ok && value) return value;
  throw new Error(`${base.host} answered ${response.status}: ${value?.error?.message ?? text.slice(0, 300)}`);
}

function choose(models, name, own, base) {
  const found = name ? models.find(({ id }) => id === name) : (models.find(({ id }) => id === own) ?? (models.length === 1 ? models[0] : null));
  if (found) return found;
  throw new Error(`${base.host} has ${models.map(({ id }) => id).join(", ") || "no model"}. Say which one is the same file.`);
}

// The properties that decide the bits; the tier and the device do not.
const DECIDE = ["architecture", "arithmetic", "activations", "kv_dtype", "n_parameters", "weight_bytes"];

function differences(here, there) {
  const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  const other = DECIDE.filter((name) => there[name] !== undefined && text(here[name]) !== text(there[name]));
  return other.map((name) => `${name} is ${text(here[name])} here and ${text(there[name])} there`);
}

export function verdict(mine, theirs) {
  const at = mine.findIndex((hash, i) => hash !== theirs[i]);
  if (at < 0) return `Equal: ${mine.length} of ${mine.length} tokens have the same hash of logits.`;
  if (theirs[at] === undefined) return `Different: the server's answer ended after ${at} tokens, the page's has ${mine.length}.`;
  return `Different from token ${at + 1} of ${mine.length} on: its logits have the hash ${mine[at]} here and ${theirs[at]} there.`;
}

async function check({ body, model, hashes }) {
  const base = new URL($("check-url").value.trim().replace(/\/*$/, "/"));
  const key = $("check-key").value.trim();
  const here = await model;
  if (!here) throw new Error("The model that answered is no longer open.");
  const { data = [] } = await ask(base, "v1/models", key);
  let there = choose(data, $("check-model").value.trim(), here.id, base);
  const request = { ...body, model: there.id, stream: false, max_tokens: hashes.length };
  delete request.stream_options;
  const { choices } = await ask(base, "v1/chat/completions", key, { method: "POST", body: JSON.stringify(request) });
  const theirs = choices?.[0]?.logits_hash;
  if (!theirs) throw new Error(`${base.host} gives no hashes of logits. Is it a zinc_rt server?`);
  // Before the answer it may not have been loaded.
  if (!there.tier) there = (await ask(base, "v1/models", key)).data.find(({ id }) => id === there.id) ?? there;
  const result = verdict(hashes, theirs);
  const isEqual = result.startsWith("Equal");
  const lines = [result, `Here ${here.tier}, there ${there.tier}${there.device ? ` (${there.device})` : ""}.`];
  if (body.continue_final_message) lines.push("This is about the part of the answer behind the last Continue.");
  if (!isEqual) lines.push(...differences(here, there));
  return { isEqual, text: lines.join("\n") };
}

export function startCheck() {
  addButtons((message) => {
    const proof = proofs.get(message);
    if (!proof?.hashes.length || message.error) return [];
    return [["Check", () => {
      chosen = proof;
      if (location.pathname.endsWith("/local")) $("check-url").value ||= location.origin; // a server's own page
      $("check-result").textContent = "";
      $("check-start").disabled = false;
      openDialog($("check"));
    }]];
  });
  $("check-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const proof = chosen;
    $("check-start").disabled = true;
    $("check-result").className = "";
    $("check-result").textContent = "The server answers…";
    const { isEqual, text } = await check(proof).catch((error) => ({ isEqual: false, text: error.message }));
    if (proof !== chosen) return; // the dialog is about another answer now
    $("check-result").className = isEqual ? "good" : "error";
    $("check-result").textContent = text;
    $("check-start").disabled = false;
  });
}
