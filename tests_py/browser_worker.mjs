// The worker of test_browser_engine.py in Chromium: gets {folder, options, requests}, where folder is "blob" (a file that
// the user chose) or "private" (the origin's private files), and answers with the bodies of the requests.
import { LocalEngine } from "/js/engine.mjs";

async function file_of(kind) {
  const blob = await (await fetch("/model.gguf")).blob();
  if (kind === "blob") {
    const reader = new FileReaderSync();
    const read = (at, bytes) => {
      const part = new Uint8Array(reader.readAsArrayBuffer(blob.slice(at, at + bytes.length)));
      bytes.set(part);
      return part.length;
    };
    return { size: blob.size, read };
  }
  const folder = await navigator.storage.getDirectory();
  const handle = await (await folder.getFileHandle("model.gguf", { create: true })).createSyncAccessHandle();
  handle.write(await blob.arrayBuffer(), { at: 0 });
  return { size: handle.getSize(), read: (at, bytes) => handle.read(bytes, { at }) };
}

onmessage = async ({ data: { kind, options, requests } }) => {
  try {
    const engine = await LocalEngine.open({
      module: await WebAssembly.compileStreaming(fetch("/zinc_rt.wasm")),
      files: { "/model.gguf": await file_of(kind) },
      model: { path: "/model.gguf", ...options },
    });
    const answers = [];
    for (const { path, body } of requests)
      answers.push(await (await engine.fetch(path, { method: "POST", body: JSON.stringify(body) })).text());
    postMessage({ answers });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
