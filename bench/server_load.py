"""What a zinc-rt server (or another that speaks OpenAI's API) does with clients that `zinc-rt bench serve` does not
imitate: many open streams that wait, and half-open connections; what they cost in memory, and whether /health answers
meanwhile. Prints Markdown; --json FILE writes the numbers.

    python bench/server_load.py --model model.gguf                    # starts zinc-rt itself
    python bench/server_load.py --url http://127.0.0.1:8081 --pid N   # a server that runs already, as a peer
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time
import urllib.parse


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else float("nan")


class Target:
    """The server under test: where it is, and what its process uses."""

    def __init__(self, url, pid):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.pid = parts.hostname, parts.port, pid

    def rss_mb(self):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def get(self, path):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return text if response.status == 200 else None

    def kv_mb(self):
        """Of the KV cache, what requests and prefixes use; None where the server does not say."""
        metrics = self.get("/metrics") or ""
        free = re.search(r"^zinc:kv_pages_free\{[^}]*\} (\S+)$", metrics, re.M)
        cached = re.search(r"^zinc:kv_pages_cached\{[^}]*\} (\S+)$", metrics, re.M)
        if not free or not cached:
            return None
        model = json.loads(self.get("/v1/models"))["data"][0]
        return (model["kv_pages"] - float(free[1]) + float(cached[1])) * model["kv_page_bytes"] / 2**20

    def message(self, path, body):
        data = json.dumps(body).encode()
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        ).encode() + data


def health_process(host, port, results, stop):
    """Times /health on connections of its own, in a process of its own, so that the load's client does not count."""
    took = []
    while not stop.is_set():
        start = time.perf_counter()
        try:
            connection = http.client.HTTPConnection(host, port, timeout=5)
            connection.request("GET", "/health")
            good = connection.getresponse().status == 200
            connection.close()
        except OSError:
            good = False
        took.append((time.perf_counter() - start) * 1e3 if good else float("inf"))
        time.sleep(0.02)
    results.put(took)


@contextlib.contextmanager
def timing_health(target, into):
    results, stop = multiprocessing.Queue(), multiprocessing.Event()
    process = multiprocessing.Process(target=health_process, args=(target.host, target.port, results, stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        took = results.get(timeout=30)
        process.join()
        into["health_n"] = len(took)
        into["health_failed"] = sum(t == float("inf") for t in took)
        into["health_p50_ms"] = quantile(took, 0.5)
        into["health_p99_ms"] = quantile(took, 0.99)


class Stream:
    """One answer in server-sent events; when its head came, and how many tokens."""

    def __init__(self, target, body):
        self.target, self.body = target, {**body, "stream": True}
        self.head_at = self.start = self.status = None
        self.n_tokens = self.heartbeats = 0

    async def run(self):
        self.start = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection(self.target.host, self.target.port)
        except OSError:
            return self
        writer.write(self.target.message("/v1/completions", self.body))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.head_at = time.perf_counter()
            self.status = int(head.split(b" ")[1])
            while self.status == 200:
                line = await reader.readline()
                if not line:
                    break
                if line.startswith(b"data: {"):
                    if b'"finish_reason":null' in line:
                        self.n_tokens += 1
                elif line.startswith(b": "):
                    self.heartbeats += 1
                elif line.startswith(b"data: [DONE]"):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
        return self


def prompt(n_words, seed=0):
    return " ".join(f"word{(i * 7919 + seed) % 1000}" for i in range(n_words))


async def many_streams(target, n_open):
    """n_open streams: as many are computed as the server has slots, the others wait with their heads; all leave."""
    out = {}
    rss, threads, kv = target.rss_mb(), target.threads(), target.kv_mb()
    with timing_health(target, out):
        bodies = [{"prompt": prompt(4, i), "max_tokens": 400, "ignore_eos": True} for i in range(n_open)]
        streams = [Stream(target, body) for body in bodies]
        tasks = []
        for stream in streams:
            tasks.append(asyncio.create_task(stream.run()))
            await asyncio.sleep(0.001)
        await asyncio.sleep(35)
        out["heads"] = sum(s.status == 200 for s in streams)
        out["streaming"] = sum(s.n_tokens > 1 for s in streams)
        out["heartbeats"] = sum(s.heartbeats for s in streams)
        out["rss_mb_more"] = target.rss_mb() - rss
        if kv is not None:
            out["kv_mb_more"] = target.kv_mb() - kv  # of that, what the streams that run have in the KV cache
        out["threads_more"] = target.threads() - threads
    out["head_p99_ms"] = quantile([(s.head_at - s.start) * 1e3 for s in streams if s.head_at], 0.99)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return out


async def half_open(target, n):
    out = {}
    rss = target.rss_mb()
    writers = []
    for _ in range(n):
        _, writer = await asyncio.open_connection(target.host, target.port)
        writer.write(b"GET /health HTTP/1.1\r\nHos")
        writers.append(writer)
        if len(writers) % 100 == 0:
            await asyncio.sleep(0.005)
    with timing_health(target, out):
        await asyncio.sleep(5)
        out["rss_mb_more"] = target.rss_mb() - rss
    for writer in writers:
        writer.close()
    return out


@contextlib.contextmanager
def zinc(model, program, more):
    arguments = [*program, "serve", str(model), "--port", "0", "--state", "none", *more]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        line = process.stdout.readline().decode()
        url = re.match(r"http://\S+", line)
        if not url:
            sys.exit(f"the server did not start: {line}")
        yield Target(url[0], process.pid), line.strip()
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file, served by zinc-rt")
    parser.add_argument("--program", default=f"{sys.executable} -m zinc_rt", help="the zinc-rt to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--pid", type=int, help="its process")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--slots", type=int, default=100, help="of zinc-rt: streams that are computed at once")
    parser.add_argument("--half-open", type=int, default=5000)
    parser.add_argument("--only", nargs="*", help="streams, half_open")
    parser.add_argument("--json")
    options = parser.parse_args()
    if (options.model is None) == (options.url is None or options.pid is None):
        parser.error("--model, or --url and --pid")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    program = shlex.split(options.program)
    cases = {
        "streams": lambda t: many_streams(t, options.streams),
        "half_open": lambda t: half_open(t, options.half_open),
    }
    results = {}
    for name, run in cases.items():
        if options.only and name not in options.only:
            continue
        context = (
            zinc(options.model, program, ["--max-slots", str(options.slots)])
            if options.model
            else contextlib.nullcontext((Target(options.url, options.pid), options.url))
        )
        with context as (target, line):
            if not results:
                print(f"{line}; load average {os.getloadavg()[0]:.1f}; clamps: none\n")
                print("| case | " + "what | value |\n|---|---|---|")
            results[name] = asyncio.run(run(target))
            for what, value in results[name].items():
                print(
                    f"| {name} | {what} | {value:.1f} |"
                    if isinstance(value, float)
                    else f"| {name} | {what} | {value} |"
                )
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
