// The models that this browser keeps, in the origin's private files: a folder for each, with its file and what is known
// of it. For a worker, because only workers can read and write such files synchronously.
import { sha256 } from "@noble/hashes/sha2.js";
import { refuseTooLarge, size } from "./sizes.js";

const FOLDER = "zinc_rt_models";
const MODEL = "model.gguf";
// {url, name, size: null if the host does not say, tag: of this version of the file, or null, wanted: the sha256 that the user
// asked for, or null, sha256: null while parts are missing}
const ABOUT = "about.json";
const PIECE = 4 << 20;
const TELL_MS = 100;

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function folder() {
  if (!navigator.storage?.getDirectory)
    throw new Error("This browser keeps no files for this page: it has to come by https, or from this computer (localhost). A file of this computer can be opened all the same.");
  return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
}

// A tab that writes a file locks it. So does a tab that reads it, in browsers without the mode "read-only".
async function alone(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "NoModificationAllowedError") throw error;
    throw new Error("Another tab has this model open. Close it there, then try again.");
  }
}

const access = (handle, options) => alone(() => handle.createSyncAccessHandle(options));

async function readAbout(model) {
  try {
    return JSON.parse(await (await (await model.getFileHandle(ABOUT)).getFile()).text());
  } catch {
    return null; // a download that ended before it began
  }
}

// Blanks take the place of the end of a longer text, so that the file is never empty.
async function writeAbout(model, about) {
  const handle = await access(await model.getFileHandle(ABOUT, { create: true }));
  try {
    const text = new TextEncoder().encode(JSON.stringify(about).padEnd(handle.getSize()));
    if (handle.write(text, { at: 0 }) !== text.length) throw new Error("The browser's store is full.");
    handle.flush();
  } finally {
    handle.close();
  }
}

// Returns {models: [{key, url, name, size, got, sha256}], used, quota}; sizes are in bytes. A model without a sha256 is not
// complete; one of which nothing else is known has no url. {models: []} if the browser keeps none.
export async function listModels() {
  if (!navigator.storage?.getDirectory) return { models: [] };
  const models = [];
  for await (const [key, model] of (await folder()).entries()) {
    if (model.kind !== "directory") continue;
    const about = (await readAbout(model)) ?? { name: "A download that broke off", url: null, size: null, sha256: null };
    const got = (await (await model.getFileHandle(MODEL, { create: true })).getFile()).size;
    models.push({ key, got, ...about });
  }
  models.sort((a, b) => a.name.localeCompare(b.name));
  const { usage, quota } = await navigator.storage.estimate();
  return { models, used: usage, quota };
}

export async function removeModel(key) {
  const models = await folder();
  await alone(() => models.removeEntry(key, { recursive: true }));
}

// Returns {size, read(at, bytes)}. The file stays open until the worker ends.
export async function openModel(key) {
  const model = await (await folder()).getDirectoryHandle(key);
  const handle = await access(await model.getFileHandle(MODEL), { mode: "read-only" });
  return { size: handle.getSize(), read: (at, bytes) => handle.read(bytes, { at }) };
}

function askedHash(url) {
  if (!url.hash) return null;
  const asked = /^#sha256=([0-9a-f]{64})$/i.exec(url.hash)?.[1].toLowerCase();
  if (!asked) throw new Error(`Behind # only sha256= and 64 digits are understood, and "${url.hash}" is something else.`);
  return asked;
}

function nameOf(url) {
  const last = url.pathname.split("/").pop();
  try {
    return decodeURIComponent(last) || url.host;
  } catch {
    return last; // a "%" that begins no byte
  }
}

// Asks for a file from byte `got` on. With a range, hosts compress nothing, so that lengths are those of the file.
async function ask(url, got, signal) {
  // no-store: the browser's own cache would keep the file once more, and ask for parts of it as it likes.
  const request = (headers) => fetch(url, { headers, signal, cache: "no-store" });
  const response = await request({ Range: `bytes=${got}-` })
    .catch((error) => {
      if (error.name === "AbortError" || got > 0) throw error;
      return request({}); // the host may refuse ranges to other sites' pages
    })
    .catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Error(`${url.host} does not answer, or does not let other sites' pages read the file (CORS).`);
    });
  if (response.ok || (response.status === 416 && got > 0)) return response;
  throw new Error(`${url.host} answered ${response.status} ${response.statusText}`.trim());
}

// Returns {begin, total, tag}: where the response begins in the file, the file's size, or null if the host does not say, and
// what changes when the file does, or null.
function placeOf(response, got) {
  const tag = response.headers.get("ETag") ?? response.headers.get("Last-Modified");
  const length = response.headers.get("Content-Length");
  if (response.status !== 206) return { begin: 0, total: length === null ? null : Number(length), tag };
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
  if (range) return { begin: Number(range[1]), total: Number(range[2]), tag };
  return { begin: got, total: length === null ? null : got + Number(length), tag }; // other sites may not read the range
}

function notGguf(begin) {
  const magic = new TextDecoder().decode(begin.subarray(0, 4));
  const words = `This is no GGUF file: it begins with ${JSON.stringify(magic)}, "GGUF" wanted.`;
  return magic.startsWith("<") ? `${words} It is a page, perhaps about the file. The URL of its download button is wanted.` : words;
}

async function refuseNoRoom(total, got) {
  refuseTooLarge("The file", total);
  const { usage, quota } = await navigator.storage.estimate();
  if (total - got > quota - usage)
    throw new Error(`${size(total - got)} are missing, and this browser has ${size(quota - usage)} left for this page. Delete a model below, or fetch the file otherwise and open it from this computer.`);
}

// Yields the pieces of a response's body. The first has at least four bytes, unless the whole body has fewer.
async function* piecesOf(response, whenBroken) {
  let begin = new Uint8Array(0);
  let isBegun = false;
  for (const reader = response.body?.getReader(); reader; ) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : whenBroken(error);
    });
    if (done) break;
    if (isBegun) {
      yield value;
      continue;
    }
    const joined = new Uint8Array(begin.length + value.length);
    joined.set(begin);
    joined.set(value, begin.length);
    begin = joined;
    if (begin.length >= 4) {
      isBegun = true;
      yield begin;
    }
  }
  if (!isBegun && begin.length > 0) yield begin;
}

class WrongFile extends Error {}

// Fetches a file, or what is missing of it. tell({got, total, isHashing}) reports how far it is. Returns {key, name}. If
// `signal` ends it, what has come is kept, and the next call goes on from there.
export async function download(text, signal, tell) {
  const url = new URL(text);
  // The page about a file of a hub, which is what people copy, has the file beside it.
  if (/^(www\.)?huggingface\.co$/.test(url.host)) url.pathname = url.pathname.replace("/blob/", "/resolve/");
  const asked = askedHash(url);
  url.hash = "";
  const key = hex(sha256(new TextEncoder().encode(url.href))).slice(0, 16);
  const model = await (await folder()).getDirectoryHandle(key, { create: true });
  const before = await readAbout(model);
  if (before?.sha256) {
    if (!asked || asked === before.sha256) return { key, name: before.name };
    throw new Error(`${before.name} is kept here with the sha256 ${before.sha256}, ${asked} wanted. Delete it, then download it again.`);
  }
  const handle = await access(await model.getFileHandle(MODEL, { create: true }));
  const request = new AbortController(); // ends all responses, also those of which nothing was read
  signal.addEventListener("abort", () => request.abort());
  if (signal.aborted) request.abort();
  let isUseless = false;
  try {
    return { key, name: await fill(url, asked ?? before?.wanted ?? null, before, model, handle, request.signal, tell) };
  } catch (error) {
    isUseless = error instanceof WrongFile || !(await readAbout(model));
    throw error;
  } finally {
    request.abort();
    handle.close();
    if (isUseless) await removeModel(key).catch(() => {});
  }
}

async function fill(url, wanted, before, model, handle, signal, tell) {
  let got = before ? handle.getSize() : 0;
  let about = before && { ...before, wanted };
  let response = null;
  if (!before || got !== before.size) {
    response = await ask(url, got, signal);
    let place = placeOf(response, got);
    // The rest of the same file, as far as the host tells, or as the hash will.
    const isSame = place.total === before?.size && (wanted !== null || (place.tag !== null && place.tag === before?.tag));
    if (got > 0 && !(response.status === 206 && place.begin === got && isSame)) {
      got = 0;
      if (response.status !== 200) response = await ask(url, got, signal);
      place = placeOf(response, got);
    }
    if (place.begin !== got) throw new Error(`${url.host} sent the file from byte ${place.begin} on, ${got} was asked for.`);
    await refuseNoRoom(place.total ?? 0, got);
    about = { url: url.href, name: nameOf(url), size: place.total, tag: place.tag, wanted, sha256: null };
  }
  const hash = sha256.create();
  const piece = new Uint8Array(PIECE);
  for (let at = 0; at < got; ) {
    signal.throwIfAborted();
    const n = handle.read(piece.subarray(0, Math.min(PIECE, got - at)), { at });
    if (n === 0) throw new WrongFile(`The kept file ends at ${at} of ${got} bytes, so it was removed. Download it again.`);
    hash.update(piece.subarray(0, n));
    tell({ got: (at += n), total: about.size, isHashing: true });
    await new Promise((resolve) => setTimeout(resolve)); // lets a pause come in
  }
  if (response) got = await write(response, got, about, model, handle, hash, tell);
  const found = hex(hash.digest());
  if (wanted && found !== wanted) throw new WrongFile(`The file's sha256 is ${found}, ${wanted} wanted. It was removed.`);
  await writeAbout(model, { ...about, size: got, sha256: found });
  return about.name;
}

// Writes a response behind the first `got` bytes. Returns how many there are then.
async function write(response, got, about, model, handle, hash, tell) {
  const broken = (error) => new Error(`The download broke off at ${size(got)}: ${error.message}. Resume goes on from there.`);
  let told = -Infinity;
  for await (const value of piecesOf(response, broken)) {
    if (got === 0) {
      // What has come before is kept until this looks like the file.
      if (value.length < 4 || String.fromCharCode(...value.subarray(0, 4)) !== "GGUF") throw new Error(notGguf(value));
      handle.truncate(0);
      await writeAbout(model, about);
    }
    if (handle.write(value, { at: got }) !== value.length) throw new Error(`The browser's store is full at ${size(got)}.`);
    hash.update(value);
    got += value.length;
    refuseTooLarge("The file", got); // the host may not have said its size
    if (performance.now() - told < TELL_MS) continue;
    told = performance.now();
    tell({ got, total: about.size });
  }
  handle.flush();
  if (got === 0) throw new Error("The host sent an empty file.");
  if (about.size !== null && got !== about.size) throw new Error(`The file ended at ${got} of ${about.size} bytes. Resume asks for the rest.`);
  return got;
}
