import { setKey, whenKeyIsWanted } from "./api.js";
import { loadModels, startChat } from "./chat.js";
import { $, element } from "./dom.js";
import { enterUsage, leaveUsage, startUsage } from "./usage.js";

function showPage() {
  const isUsage = location.hash === "#usage";
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
  try {
    await loadModels();
  } catch (error) {
    if (error.status !== 401)
      $("messages").prepend(element("p", { className: "error", role: "alert" }, error.message));
  }
}

whenKeyIsWanted(() => {
  $("key-panel").hidden = false;
});
$("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  setKey($("key").value.trim());
  $("key").value = "";
  $("key-panel").hidden = true;
  await connect();
  showPage();
});
startChat();
startUsage();
connect();
showPage();
addEventListener("hashchange", showPage);
