// Where in a JSON text the value stands that a JSON pointer names.

// The pointer's parts: "/a~1b/0" names ["a/b", "0"].
const partsOf = (pointer) =>
  pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));

// [from, to] of its name, or of its first token in a list; null: it is not there.
export function placeOf(text, pointer) {
  const wanted = partsOf(pointer);
  const open = []; // for each open bracket {isList, key}: the member that is read
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
