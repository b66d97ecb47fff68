import { setKey, waitForServer, whenKeyIsWanted } from "./api.js";
import { startCard } from "./card.js";
import { startChat } from "./chat.js";
import { $ } from "./dom.js";
import { startLocal } from "./local/start.js";
import { loadModels, startModels } from "./models.js";
import { startPanels } from "./panels.js";
import { enterUsage, leaveUsage, startUsage } from "./usage.js";

// An engine in this page answers, not the server that the page comes from.
const isLocal = document.documentElement.dataset.engine === "page";

function showPage() {
  const isUsage = location.hash === "#usage" && !isLocal;
  $("usage-page").hidden = !isUsage;
  $("chat-page").hidden = isUsage;
  $("show-settings").hidden = isUsage;
  $("show-chats").hidden = isUsage;
  for (const link of document.querySelectorAll("nav a"))
    if ((link.hash === "#usage") === isUsage) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  if (isUsage) enterUsage();
  else leaveUsage();
}

async function connect() {
  for (;;) {
    try {
      await loadModels();
      $("trouble").hidden = true;
      return true;
    } catch (error) {
      if (error.status === 401) return false;
      $("trouble").hidden = false;
      $("trouble").textContent = error.message;
      if (error.cause !== "gone" && error.cause !== "busy") return false;
      await waitForServer(new AbortController().signal, (s) => {
        $("trouble").textContent = `${error.message} Trying again in ${s} s.`;
      });
    }
  }
}

whenKeyIsWanted((hadOne) => {
  $("key-label").textContent = hadOne ? "The server does not know this key. Another one:" : "This server wants an API key:";
  $("key-panel").classList.toggle("wrong", hadOne);
  $("key-panel").hidden = false;
  if (document.activeElement === document.body || document.activeElement === $("text")) $("key").focus();
});
$("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  setKey($("key").value.trim());
  $("key").value = "";
  $("key-panel").hidden = true;
  const isGood = await connect();
  showPage();
  if (isGood) $("text").focus();
});
function startPage() {
  startModels();
  startCard();
  startChat();
  startUsage();
  connect();
  showPage();
  addEventListener("hashchange", showPage);
}

startPanels();
if (isLocal) startLocal(startPage);
else startPage();
