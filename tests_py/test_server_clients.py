"""Clients that stall, hang up or fall behind, and a server that is busy, hangs or ends."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import tiny_model as tiny
from http_helpers import GOOD, HEAD, idle, stream
from server_process import PROGRAM, serving


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        yield server


def test_a_client_that_sends_nothing_or_slowly_is_let_go(server):
    """Half-open connections cost no thread, and end by themselves."""
    n = 200
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection((server.host, server.port))) for _ in range(n)]
        for s in idle[: n // 2]:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost:")
        server.wait(lambda: server.gauge("zinc:http_connections") >= n)
        assert server.request("GET", "/health")[0] == 200
        server.wait(lambda: server.gauge("zinc:http_connections") < 5, seconds=40)


def test_who_hangs_up_frees_the_slot(server):
    long = {**GOOD, "max_tokens": 400, "ignore_eos": True, "min_tokens": 400}
    pages = server.gauge("zinc:kv_pages_free")
    streams = [stream(server, long, read=1) for _ in range(3)]
    for s in streams:
        s.close()
    server.wait(lambda: idle(server), seconds=5)
    assert server.gauge("zinc:kv_pages_free") == pages
    assert server.request("POST", "/v1/chat/completions", GOOD)[0] == 200


def test_no_stream_that_was_reset_runs_to_its_end(tmp_path):
    """The first write after a reset fails, and the job must hear of it whatever it was doing then."""
    # An answer of 30,000 tokens takes longer than any of the pauses below, on a machine of any speed.
    tiny.write(tmp_path / "long.gguf", context=32768)
    long = {**GOOD, "max_tokens": 30000, "ignore_eos": True, "stream": True}
    data = json.dumps(long).encode()
    rng = random.Random(1)
    with serving(tmp_path / "long.gguf", "--max-slots", 8) as server:
        for _ in range(200):
            with socket.create_connection((server.host, server.port), timeout=30) as s:
                s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data)
                if rng.random() < 0.5:
                    s.recv(4096)
                time.sleep(rng.random() * 0.02)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait(lambda: server.gauge("zinc:slots_free") == 8)
        _, _, text = server.request("GET", "/metrics")
        ends = re.findall(r'^vllm:request_success_total\{.*finished_reason="(\w+)".*\} (\d+)', text.decode(), re.M)
        ends = {reason: int(n) for reason, n in ends}
        # A request whose connection was reset before it was read has no end of its own.
        assert ends["cancelled"] > 150 and not ends.get("length"), ends


def test_hanging_up_at_any_moment_leaves_nothing_behind(server):
    pages = server.gauge("zinc:kv_pages_free")
    bodies = [{**GOOD, "max_tokens": 60, "n": n, "stream": s} for n in (1, 3) for s in (False, True)]

    def drop(i):
        data = json.dumps(bodies[i % len(bodies)]).encode()
        message = HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data
        with socket.create_connection((server.host, server.port), timeout=30) as s:
            s.sendall(message[: len(message) if i % 7 else i % len(message)])
            time.sleep((i * 37 % 50) / 1000)
            if i % 3 == 0:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(drop, range(400)))
    server.wait(lambda: idle(server), seconds=10)
    assert server.gauge("zinc:kv_pages_free") == pages


def test_a_reader_who_is_behind_gets_all_of_it(server):
    long = {**GOOD, "max_tokens": 300, "ignore_eos": True}
    with stream(server, long) as s:
        time.sleep(1)
        got = b""
        while b"[DONE]" not in got:
            piece = s.recv(100)
            assert piece
            got += piece


def test_health_answers_while_the_engine_is_busy(server):
    long = {**GOOD, "max_tokens": 400, "ignore_eos": True}
    done = threading.Event()

    def work():
        while not done.is_set():
            server.request("POST", "/v1/chat/completions", long)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    try:
        assert [server.request("GET", path)[0] for path in ("/health", "/livez", "/readyz") * 20] == [200] * 60
        assert server.request("GET", "/health_generate")[0] == 200
    finally:
        done.set()
        for worker in workers:
            worker.join()


def test_metrics_forget_a_model_that_is_gone_and_go_on_counting_when_it_is_back(tiny_model):
    def lines(name):
        text = server.request("GET", "/metrics")[2].decode()
        return [line for line in text.splitlines() if line.startswith(name) and 'model_name="second"' in line]

    def count(name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines(name))

    with serving(tiny_model, "--id", "tiny") as server:
        for turn in (1, 2):
            assert server.request("POST", "/v1/models/load", {"path": str(tiny_model), "id": "second"})[0] == 200
            request = {**GOOD, "model": "second", "ignore_eos": True}
            assert server.request("POST", "/v1/chat/completions", request)[0] == 200
            assert count("zinc:slots_free") > 0
            assert count("vllm:generation_tokens_total") == 3 * turn
            assert server.request("POST", "/v1/models/unload", {"id": "second"})[0] == 200
            assert lines("zinc:slots_free") == lines("vllm:num_requests_running") == []
            assert count("vllm:generation_tokens_total") == 3 * turn


def held(pid, tid):
    """Stops one thread of another process until the returned function is called."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach = 0x4206, 0x4207, 17
    if libc.ptrace(seize, tid, None, None) != 0:
        pytest.skip(f"this system lets no process stop another's thread: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(interrupt, tid, None, None) == 0
    assert os.waitpid(tid, 0x40000000)[0] == tid  # __WALL
    return lambda: libc.ptrace(detach, tid, None, None)


@pytest.mark.parametrize("thread", ["zrt-step", "zrt-ring-cpu"])
def test_a_hung_step_fails_the_deep_probe_alone_within_its_time(tiny_model, thread):
    with serving(tiny_model, "--id", "tiny") as server:
        assert server.request("GET", "/health_generate")[0] == 200
        tasks = f"/proc/{server.process.pid}/task"
        (tid,) = [t for t in os.listdir(tasks) if pathlib.Path(tasks, t, "comm").read_text().strip() == thread]
        release = held(server.process.pid, int(tid))
        try:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:  # who ask at once do not wait for one another
                ask = pool.map(lambda _: server.request("GET", "/health_generate", timeout=10), range(8))
                ((status, _, answer),) = {(code, "", json.dumps(answer)) for code, _, answer in ask}
            answer = json.loads(answer)
            assert (status, answer["status"]) == (503, "failing")
            assert 1900 <= answer["waited_ms"]
            assert "no step has ended" in answer["reason"]
            assert server.request("GET", "/livez")[0] == 200
            time.sleep(4)  # figures of the engine that are this old are no more waited for
            assert server.gauge("vllm:num_requests_running") >= 0
        finally:
            release()
        server.wait(lambda: server.request("GET", "/health_generate")[0] == 200)
        assert server.request("POST", "/v1/chat/completions", GOOD)[0] == 200


def test_sigterm_finishes_what_runs(tiny_model):
    long = {**GOOD, "max_tokens": 400, "ignore_eos": True}
    with serving(tiny_model, "--id", "tiny") as server:
        s = stream(server, long)
        server.process.terminate()
        got = b""
        while piece := s.recv(65536):
            got += piece
        assert b"data: [DONE]" in got
        assert server.process.wait(30) == 0


def test_sigterm_ends_it_while_it_loads(tiny_model, tmp_path):
    models = "".join(f'[[models]]\npath = "{tiny_model}"\nid = "m{i}"\n' for i in range(200))
    (tmp_path / "zinc.toml").write_text(models)
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--state", "none", "--config", tmp_path / "zinc.toml"],
        stdout=subprocess.PIPE,
    )
    try:
        blocked = 0
        while not blocked >> (signal.SIGTERM - 1) & 1:
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            blocked = int(text.split("SigBlk:")[1].split()[0], 16)
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        assert process.communicate(timeout=20)[0] == b""  # it never served
        assert process.returncode == 0
    finally:
        process.kill()
