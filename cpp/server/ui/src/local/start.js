// The page whose engine is in the page: choosing a model, then the chat page as a server's, which that engine answers.
import { watchAnswers } from "../answer.js";
import { sendTo } from "../api.js";
import { $, element } from "../dom.js";
import { loadModels } from "../models.js";
import { noteAnswer, noteRequest, startCheck } from "./check.js";
import { EngineClient } from "./engine_client.js";
import { refuseTooLarge, size } from "./sizes.js";

const NOTHING_OPEN = "No model is open.";

let client = null; // of the open model
let openKey = null; // its key, if the browser keeps it
let lister = null; // the client that downloads and lists
let isBusy = false; // with a download, or opening or deleting a model
let work = null; // the AbortController of a download
let startPage; // null once it was called
let speed = null; // tokens/s of the last answer

function files() {
  if (lister?.hasFailed) lister = null;
  return (lister ??= new EngineClient());
}

function showProblem(error) {
  $("engine-problem").hidden = !error;
  $("engine-problem").textContent = error?.message ?? "";
}

function showWork(words, value) {
  $("engine-work").hidden = false;
  $("engine-words").textContent = words;
  if (value === undefined) $("engine-progress").removeAttribute("value");
  else $("engine-progress").value = value;
  $("engine-pause").hidden = !work;
}

// Does one thing at a time: what is asked for meanwhile does not happen. Shows what goes wrong.
async function alone(what) {
  if (isBusy) return;
  isBusy = $("engine-download").disabled = true;
  showProblem(null);
  try {
    await what();
  } catch (error) {
    if (error.name !== "AbortError") showProblem(error);
  }
  work = null;
  isBusy = $("engine-download").disabled = false;
  $("engine-work").hidden = true;
  await showKept().catch(showProblem);
}

async function showKept() {
  const { models, used, quota } = await files().call("models");
  $("engine-kept").hidden = models.length === 0;
  if (models.length > 0) $("engine-space").textContent = `${size(used)} used of the ${size(quota)} that this browser gives the page.`;
  $("engine-list").replaceChildren(...models.map(keptView));
}

function keptView(model) {
  const act = (text, what, properties = {}) =>
    element("button", { type: "button", ariaLabel: `${text} ${model.name}`, onclick: () => alone(what), ...properties }, text);
  const state = model.sha256
    ? element("span", { className: "hint", title: `sha256 ${model.sha256}, from ${model.url}` }, `${size(model.got)}, sha256 ${model.sha256.slice(0, 12)}…`)
    : element("span", { className: "hint", title: model.url ?? "" }, `${size(model.got)}${model.size ? ` of ${size(model.size)}` : ""} have come`);
  const name = element("span", { className: "name" }, model.name);
  if (model.key === openKey) return element("li", {}, name, state, element("span", { className: "hint" }, "open"));
  const buttons = [act("Delete", () => confirm(`Delete ${model.name} from this browser?`) && files().call("remove", { key: model.key }))];
  if (model.sha256) buttons.unshift(act("Open", () => open(model), { className: "primary" }));
  else if (model.url) buttons.unshift(act("Resume", () => fetchModel(model.url)));
  return element("li", {}, name, state, ...buttons);
}

async function fetchModel(url) {
  work = new AbortController();
  const { signal } = work;
  showWork("Asking for the file…");
  const began = performance.now();
  let first = null;
  const tell = ({ got, total, isHashing }) => {
    if (isHashing) return showWork(`Reading what has come: ${size(got)}`, total ? got / total : undefined);
    first ??= got;
    const rate = (got - first) / ((performance.now() - began) / 1000);
    showWork(`${size(got)}${total ? ` of ${size(total)}` : ""}, ${size(rate)}/s`, total ? got / total : undefined);
  };
  await navigator.storage?.persist?.(); // else the browser may delete it when it needs room; a refusal changes nothing
  const { key, name } = await files().call("download", { url }, { signal, tell });
  work = null;
  if (!client) await open({ key, name }); // a model that is open may be answering
}

// Opens a file of the user's, or a kept model.
async function open({ file, key, name }) {
  const max_context = $("engine-context").value ? Number($("engine-context").value) : undefined; // else the engine's own
  if (file) refuseTooLarge(name, file.size);
  showWork(`Opening ${name}…`);
  client?.close("Another model was opened.", "AbortError"); // first, since two may not fit into memory
  client = openKey = speed = null;
  $("engine-state").textContent = NOTHING_OPEN;
  const mine = new EngineClient();
  try {
    await mine.call("open", { file, key, id: name.replace(/\.gguf$/i, ""), max_context });
  } catch (error) {
    mine.close();
    throw error;
  }
  client = mine;
  openKey = key ?? null;
  await showState();
  $("engine-pick").hidden = true;
  $("engine").removeAttribute("role"); // from now on the chat is what the page is for
  $("engine-strip").hidden = false;
  if (startPage) startPage();
  else await loadModels();
  startPage = null;
}

async function showState() {
  const { model, version, memory_bytes } = await client.call("info");
  const parts = [model.id, `${model.tier}, ${model.arithmetic} arithmetic`];
  if (speed) parts.push(`${speed.toFixed(1)} tokens/s`);
  parts.push(`${size(memory_bytes)} of memory`);
  $("engine-state").textContent = parts.join(" · ");
  $("engine-state").title = `zinc_rt ${version} in this page, as WebAssembly on one thread`;
}

async function answerHere(path, options) {
  if (!client) throw Object.assign(new Error(), { words: NOTHING_OPEN });
  if (path === "livez") return new Response("ok");
  return client.fetch(path, options);
}

export function startLocal(start) {
  startPage = start;
  for (const name of ["show-chats", "show-settings"]) $(name).hidden = true; // until there is something to talk to
  sendTo(answerHere);
  watchAnswers({
    // The card of the model that answers, since another may be open when the answer is checked.
    asks: (message, body) => noteRequest(message, body, client?.call("info").then(({ model }) => model, () => null)),
    hears(message, event) {
      noteAnswer(message, event);
      if (!event.timings) return;
      speed = event.timings.decode_tokens_per_s;
      showState().catch(() => {}); // the engine was closed meanwhile
    },
  });
  startCheck();
  $("engine-form").addEventListener("submit", (event) => {
    event.preventDefault();
    alone(() => fetchModel($("engine-url").value.trim()));
  });
  $("engine-file").addEventListener("change", () => {
    const [file] = $("engine-file").files;
    if (file) alone(() => open({ file, name: file.name }));
    $("engine-file").value = "";
  });
  $("engine-pause").addEventListener("click", () => work?.abort());
  $("engine-change").addEventListener("click", () => {
    $("engine-pick").hidden = !$("engine-pick").hidden;
    if (!$("engine-pick").hidden) showKept().catch(showProblem);
  });
  const asked = new URLSearchParams(location.search).get("model"); // a link may name a model
  if (asked) $("engine-url").value = asked;
  showKept().catch(showProblem);
}
