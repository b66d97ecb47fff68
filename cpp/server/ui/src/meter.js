// Shows how full the context is: what the last answer used, and an estimate of what the message in the composer adds.
import { callsOf } from "./calls.js";
import { $ } from "./dom.js";
import { currentModel } from "./models.js";

const BYTES_PER_TOKEN = 4; // an estimate for English text

const estimate = (text) => Math.ceil(new TextEncoder().encode(text).length / BYTES_PER_TOKEN);

export function showMeter(chat) {
  const most = currentModel()?.max_context;
  const textOf = (m) => [m.content, ...callsOf(m).map((call) => call.function.name + call.function.arguments)].join(" ");
  const kept = chat.messages.filter((m) => textOf(m) && !m.dropped);
  const known = kept.findLastIndex((m) => m.stats?.context);
  // If messages were dropped after the last answer, that answer's figure still includes them.
  const isStale = chat.messages.some((m) => m.dropped) && !(kept[known]?.stats.context && known === kept.length - 1);
  const rest = (isStale ? kept : kept.slice(known + 1)).map(textOf).join(" ") + $("text").value;
  const used = (isStale || known < 0 ? 0 : kept[known].stats.context) + estimate(rest);
  $("meter-box").hidden = !most;
  if (!most) return;
  $("meter").max = most;
  $("meter").value = Math.min(used, most);
  $("meter").high = most * 0.8;
  const about = rest.trim() ? "about " : "";
  const full = used > most ? " – too long for this model" : "";
  $("meter-text").textContent = `${about}${used.toLocaleString("en")} of ${most.toLocaleString("en")} tokens${full}`;
  $("meter-box").classList.toggle("full", used > most);
}
