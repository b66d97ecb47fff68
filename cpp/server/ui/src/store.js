// Keeps chats and settings in localStorage. Each chat has its own key, so that two tabs do not overwrite each other's
// chats.
const CHAT = "zinc_rt.chat.";
const SETTINGS = "zinc_rt.settings";

export function newChat() {
  const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
  return { id, title: "New chat", changed: Date.now(), messages: [] };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// Returns all chats, the newest first.
export function loadChats() {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(CHAT))
    .map((key) => parse(localStorage.getItem(key)))
    .filter((chat) => Array.isArray(chat?.messages))
    .sort((a, b) => b.changed - a.changed);
}

export function saveChat(chat) {
  chat.changed = Date.now();
  localStorage.setItem(CHAT + chat.id, JSON.stringify(chat));
}

export function deleteChat(chat) {
  localStorage.removeItem(CHAT + chat.id);
}

export function loadSettings() {
  return parse(localStorage.getItem(SETTINGS)) ?? {};
}

export function saveSettings(settings) {
  localStorage.setItem(SETTINGS, JSON.stringify(settings));
}
