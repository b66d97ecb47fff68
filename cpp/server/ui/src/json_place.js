// Finds the value in a JSON text that a JSON pointer names.

// Splits a pointer into its parts: "/a~1b/0" becomes ["a/b", "0"].
const partsOf = (pointer) =>
  pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));

// Returns [from, to]: where the member's name stands, or the first token of a list's entry. Returns null if there is
// none.
export function placeOf(text, pointer) {
  const wanted = partsOf(pointer);
  const open = []; // one entry {isList, key} per open bracket; key is the member that is being read
  let wantsKey = false;
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs)) {
    const top = open.at(-1);
    const isPlace = () => open.length === wanted.length && open.every(({ key }, i) => String(key) === wanted[i]);
    if (token === ",") {
      if (top?.isList) ++top.key;
      else wantsKey = true;
    } else if (token === "}" || token === "]") {
      open.pop();
      wantsKey = false;
    } else if (token !== ":") {
      if (wantsKey) top.key = JSON.parse(token);
      if ((wantsKey || top?.isList) && isPlace()) return [index, index + token.length];
      wantsKey = token === "{";
      if (token === "{" || token === "[") open.push({ isList: token === "[", key: token === "[" ? 0 : null });
    }
  }
  return null;
}
