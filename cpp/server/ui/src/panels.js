// The panels at the sides, which cover the page if it is narrow, and the dialogs.
import { $ } from "./dom.js";

const PANELS = { chats: "show-chats", settings: "show-settings" };
const narrow = matchMedia("(max-width: 45rem)");
const isOver = (name) => narrow.matches && $(name).classList.contains("shown");

export function setPanel(name, isShown) {
  $(name).classList.toggle("shown", isShown);
  $(PANELS[name]).ariaExpanded = String(isShown);
  $("shade").hidden = !Object.keys(PANELS).some(isOver);
}

function toggle(name) {
  const isShown = !$(name).classList.contains("shown");
  if (narrow.matches) closeOverlays();
  setPanel(name, isShown);
  if (isShown) $(name).querySelector("button, input, textarea, select")?.focus();
}

// Closes the panels that cover the page. Returns false if there was none.
export function closeOverlays() {
  const over = Object.keys(PANELS).filter(isOver);
  for (const name of over) {
    const hadFocus = $(name).contains(document.activeElement);
    setPanel(name, false);
    if (hadFocus) $(PANELS[name]).focus();
  }
  return over.length > 0;
}

// Closes the settings beside the chat. Returns false if they were not open.
export function closeSettings() {
  const isShown = $("settings").classList.contains("shown");
  setPanel("settings", false);
  return isShown;
}

export function openDialog(dialog) {
  if (!dialog.open) dialog.showModal();
}

export function startPanels() {
  for (const [name, button] of Object.entries(PANELS)) $(button).addEventListener("click", () => toggle(name));
  $("shade").addEventListener("click", closeOverlays);
  narrow.addEventListener("change", () => Object.keys(PANELS).forEach((name) => setPanel(name, false)));
  for (const dialog of document.querySelectorAll("dialog")) {
    // A click outside the dialog hits its backdrop. The event's target is then the dialog itself.
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  }
  $("show-help").addEventListener("click", () => openDialog($("help")));
}
