// The part of WASI (preview1) that the engine's module imports: files that are read by ranges, the clock, random bytes,
// and the log. It needs nothing of node or of a browser.

const SUCCESS = 0, BADF = 8, INVAL = 28, IO = 29, NOENT = 44, NOSYS = 52, SPIPE = 70, NOTCAPABLE = 76;
const CHARACTER_DEVICE = 2, DIRECTORY = 3, REGULAR_FILE = 4;
const ROOT = 3; // the descriptor of the folder "/"
const RIGHTS = 0x1fffffffn;

export class ProgramExit extends Error {
  constructor(status) {
    super(`the engine's program ended with status ${status}`);
    this.status = status;
  }
}

// files: { "/name": { size, read(offset, bytes) } }; read() fills `bytes` and returns how many it wrote. It must answer
// at once: in a worker by FileReaderSync or by a handle of the origin's private files, in node by readSync.
// log(line) gets each line of the program's log.
export class Wasi {
  #files;
  #log;
  #memory;
  #open = new Map(); // descriptor -> { file, at }
  #next = ROOT + 1;
  #lines = new Map(); // descriptor -> what of a line was written

  constructor(files, log) {
    this.#files = files;
    this.#log = log;
  }

  // Call it with the instance before any export is called.
  start(instance) {
    this.#memory = instance.exports.memory;
    instance.exports._initialize();
  }

  get #view() {
    return new DataView(this.#memory.buffer);
  }
  #bytes(at, size) {
    return new Uint8Array(this.#memory.buffer, at, size);
  }
  #text(at, size) {
    return new TextDecoder().decode(this.#bytes(at, size).slice());
  }
  #file(path) {
    return this.#files["/" + path.replace(/^[./]+/, "")];
  }

  // Reads into the buffers of a list of (address, size) pairs.
  #read(open, list, n, offset, result) {
    let total = 0;
    for (let i = 0; i < n; ++i) {
      const at = this.#view.getUint32(list + 8 * i, true), size = this.#view.getUint32(list + 8 * i + 4, true);
      const wanted = Math.min(size, Math.max(0, open.file.size - offset - total));
      if (wanted === 0) continue;
      const got = open.file.read(offset + total, this.#bytes(at, wanted));
      total += got;
      if (got < wanted) break;
    }
    this.#view.setUint32(result, total, true);
    return total;
  }

  #stat(at, kind, size) {
    this.#bytes(at, 64).fill(0);
    this.#view.setUint8(at + 16, kind);
    this.#view.setBigUint64(at + 24, 1n, true);
    this.#view.setBigUint64(at + 32, BigInt(size), true);
    return SUCCESS;
  }

  imports() {
    const calls = {
      args_sizes_get: (n, size) => (this.#view.setUint32(n, 0, true), this.#view.setUint32(size, 0, true), SUCCESS),
      args_get: () => SUCCESS,
      environ_sizes_get: (n, size) => (this.#view.setUint32(n, 0, true), this.#view.setUint32(size, 0, true), SUCCESS),
      environ_get: () => SUCCESS,
      clock_res_get: (_, at) => (this.#view.setBigUint64(at, 1000n, true), SUCCESS),
      clock_time_get: (clock, _, at) => {
        const ms = clock === 0 ? Date.now() : performance.now();
        this.#view.setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
        return SUCCESS;
      },
      random_get: (at, size) => {
        for (let done = 0; done < size; done += 65536) {
          const part = new Uint8Array(Math.min(65536, size - done));
          crypto.getRandomValues(part);
          this.#bytes(at + done, part.length).set(part);
        }
        return SUCCESS;
      },
      sched_yield: () => SUCCESS,
      proc_exit: (status) => {
        throw new ProgramExit(status);
      },
      fd_prestat_get: (fd, at) => {
        if (fd !== ROOT) return BADF;
        this.#view.setUint32(at, 0, true);
        this.#view.setUint32(at + 4, 1, true);
        return SUCCESS;
      },
      fd_prestat_dir_name: (fd, at) => (fd === ROOT ? (this.#view.setUint8(at, 47), SUCCESS) : BADF),
      fd_fdstat_get: (fd, at) => {
        if (fd > ROOT && !this.#open.has(fd)) return BADF;
        this.#bytes(at, 24).fill(0);
        this.#view.setUint8(at, fd < ROOT ? CHARACTER_DEVICE : fd === ROOT ? DIRECTORY : REGULAR_FILE);
        this.#view.setBigUint64(at + 8, RIGHTS, true);
        this.#view.setBigUint64(at + 16, RIGHTS, true);
        return SUCCESS;
      },
      fd_filestat_get: (fd, at) => {
        if (fd === ROOT) return this.#stat(at, DIRECTORY, 0);
        if (fd < ROOT) return this.#stat(at, CHARACTER_DEVICE, 0);
        const open = this.#open.get(fd);
        return open ? this.#stat(at, REGULAR_FILE, open.file.size) : BADF;
      },
      path_filestat_get: (fd, _, path, size, at) => {
        if (fd !== ROOT) return BADF;
        const name = this.#text(path, size);
        if (/^[./]*$/.test(name)) return this.#stat(at, DIRECTORY, 0);
        const file = this.#file(name);
        return file ? this.#stat(at, REGULAR_FILE, file.size) : NOENT;
      },
      path_open: (fd, _, path, size, oflags, rights, inheriting, flags, result) => {
        if (fd !== ROOT) return BADF;
        if (oflags !== 0) return NOTCAPABLE; // nothing is written
        const file = this.#file(this.#text(path, size));
        if (!file) return NOENT;
        this.#open.set(this.#next, { file, at: 0 });
        this.#view.setUint32(result, this.#next++, true);
        return SUCCESS;
      },
      fd_close: (fd) => (this.#open.delete(fd) ? SUCCESS : BADF),
      fd_read: (fd, list, n, result) => {
        const open = this.#open.get(fd);
        if (!open) return BADF;
        try {
          open.at += this.#read(open, list, n, open.at, result);
          return SUCCESS;
        } catch (error) {
          this.#log(`reading failed: ${error.message}`);
          return IO;
        }
      },
      fd_pread: (fd, list, n, offset, result) => {
        const open = this.#open.get(fd);
        if (!open) return BADF;
        try {
          this.#read(open, list, n, Number(offset), result);
          return SUCCESS;
        } catch (error) {
          this.#log(`reading failed: ${error.message}`);
          return IO;
        }
      },
      fd_seek: (fd, offset, whence, result) => {
        const open = this.#open.get(fd);
        if (!open) return fd < ROOT ? SPIPE : BADF;
        const at = [0, open.at, open.file.size][whence] + Number(offset);
        if (!(at >= 0)) return INVAL;
        open.at = at;
        this.#view.setBigUint64(result, BigInt(at), true);
        return SUCCESS;
      },
      fd_write: (fd, list, n, result) => {
        if (fd !== 1 && fd !== 2) return BADF;
        let total = 0, text = this.#lines.get(fd) ?? "";
        for (let i = 0; i < n; ++i) {
          const at = this.#view.getUint32(list + 8 * i, true), size = this.#view.getUint32(list + 8 * i + 4, true);
          text += this.#text(at, size);
          total += size;
        }
        const lines = text.split("\n");
        this.#lines.set(fd, lines.pop());
        lines.forEach((line) => this.#log(line));
        this.#view.setUint32(result, total, true);
        return SUCCESS;
      },
    };
    // Addresses come as signed numbers, which are negative from 2 GiB on.
    const unsigned = (call) => (...values) => call(...values.map((one) => (typeof one === "number" ? one >>> 0 : one)));
    // What the module imports and no page has, such as the making of folders, is refused.
    return { wasi_snapshot_preview1: new Proxy(calls, { get: (all, name) => unsigned(all[name] ?? (() => NOSYS)) }) };
  }
}
