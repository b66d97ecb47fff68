"""HTTP as clients break it: each bad message gets a 4xx that says what is wrong, and the server goes on."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

import tiny_model as tiny
from server_process import PROGRAM, serving

GOOD = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        yield server


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps(GOOD).encode()
SIZE = str(len(BODY)).encode()

# Two programs could read these in two ways, or they are no HTTP at all.
BROKEN = {
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "two equal lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
    "signed length": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "negative length": HEAD + b"Content-Length: -2\r\n\r\n{}",
    "hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\n{}",
    "length of words": HEAD + b"Content-Length: two\r\n\r\n{}",
    "empty length": HEAD + b"Content-Length:\r\n\r\n{}",
    "length past 64 bits": HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "length and chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "unknown coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "coding twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding with a mark": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding in HTTP/1.0": b"POST /tokenize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk size of words": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk size with a sign": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "chunk size with 0x": HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "chunk size past 64 bits": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "chunk without its end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
    "bare line feeds": b"GET /livez HTTP/1.1\nHost: x\n\n",
    "one bare line feed": b"GET /livez HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "bare carriage return": b"GET /livez HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
    "folded header": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n",
    "folded first header": b"GET /livez HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "space before the colon": b"GET /livez HTTP/1.1\r\nHost : x\r\n\r\n",
    "no colon": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nabc\r\n\r\n",
    "empty name": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n: y\r\n\r\n",
    "name with a byte past ASCII": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\xc3\xa9: y\r\n\r\n",
    "zero byte in a value": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nA: b\x00c\r\n\r\n",
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "empty host": b"GET /livez HTTP/1.1\r\nHost:\r\n\r\n",
    "two hosts": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n",
    "two keys": b"GET /livez HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "two keys of Azure": b"GET /livez HTTP/1.1\r\nHost: x\r\napi-key: a\r\nAPI-Key: a\r\n\r\n",
    **{
        f"host {host}": f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        for host in (
            "[::1]evil",
            "[::1]:x",
            "[::1",
            "[]",
            "::1",
            "localhost:80:80",
            "localhost/a",
            "a@localhost",
            ":80",
        )
    },
    "whole address with an odd host": b"GET http://[::1]evil/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/0.9": b"GET /livez\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET /livez HTTP/1.2\r\nHost: localhost\r\n\r\n",
    "lower case": b"GET /livez http/1.1\r\nHost: localhost\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "whole address of another kind": b"GET ftp://x/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "whole address without a host": b"GET http:///livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "whole address with a user": b"GET http://a@localhost/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target with a space": b"GET /li vez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target with a raw byte": b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target with a broken escape": b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target with a cut escape": b"GET /%4 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target with an escaped zero": b"GET /a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target that is not UTF-8": b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "method that is no token": b"G@T /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("16030100c5010000c10303") + bytes(range(64)),
    "random bytes": bytes(range(128, 256)),
    "zeros": b"\x00" * 64,
    "long target": b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "long header": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 40000 + b"\r\n\r\n",
    "many headers": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    "long body": HEAD + b"Content-Length: 99999999\r\n\r\n",
    "long chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5f5e0ff\r\n" + b"x" * 1000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_message_that_breaks_http_is_refused_and_the_connection_closed(server, name):
    answer = server.raw(BROKEN[name])
    assert status(answer) in (400, 413, 431), answer[:200]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    error = json.loads(body)["error"]
    assert error["message"].startswith("[http] ") and error["type"] == "invalid_request_error"
    assert server.request("GET", "/livez")[0] == 200


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", ""])
def test_a_packed_body_is_refused_as_such(server, coding):
    answer = server.raw(HEAD + f"Content-Encoding: {coding}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    assert status(answer) == 415 and b"Content-Encoding" in answer
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers={"Content-Encoding": "Identity"})[0] == 200


@pytest.mark.parametrize("name", list(BROKEN)[:20])
def test_it_is_refused_byte_by_byte_too(server, name):
    data = BROKEN[name][:2000]
    with socket.create_connection((server.host, server.port), timeout=20) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):
            for i in range(len(data)):
                s.sendall(data[i : i + 1])
        assert status(s.recv(4096)) in (400, 413, 431)


def test_a_request_in_pieces_is_as_good_as_whole(server):
    data = b"\r\n" + HEAD + b"Content-Length: " + SIZE + b"\r\nConnection: close\r\n\r\n" + BODY
    assert status(server.raw(None, pieces=[data[i : i + 1] for i in range(len(data))])) == 200
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(BODY[i : i + 3]), BODY[i : i + 3]) for i in range(0, len(BODY), 3))
    data = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + b"0\r\n\r\n"
    assert status(server.raw(data)) == 200


def test_a_connection_takes_many_requests_and_pipelined_ones(server):
    one = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = server.raw(one * 99 + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 100


def test_what_came_before_the_client_closed_its_side_is_answered(server):
    with socket.create_connection((server.host, server.port), timeout=20) as s:
        s.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := s.recv(4096):
            answer += piece
    assert answer.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_closed_its_sending_side_gets_the_whole_answer(server, stream):
    body = json.dumps({**GOOD, "max_tokens": 200, "ignore_eos": True, "stream": stream}).encode()
    with socket.create_connection((server.host, server.port), timeout=60) as s:
        s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    assert b'"finish_reason":"length"' in answer, answer[-500:]


def test_a_wrong_method_is_told_the_right_ones(server):
    status, headers, _ = server.request("POST", "/livez", {})
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert server.request("PUT", "/v1/streams/x")[1]["Allow"] == "GET, HEAD, DELETE"


def test_the_type_of_a_body_is_read_in_any_case(server):
    headers = {"Content-Type": "Application/JSON; charset=UTF-8"}
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers=headers)[0] == 200


def test_a_connection_lives_on_after_a_stream(server):
    body = json.dumps({**GOOD, "stream": True}).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    last = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = server.raw(request * 3 + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 4 and answer.count(b"data: [DONE]") == 3


def test_an_old_client_gets_a_stream_without_chunks(server):
    body = json.dumps({**GOOD, "stream": True}).encode()
    head = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0")
    answer = server.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"chunked" not in answer and answer.endswith(b"data: [DONE]\n\n")


def test_expect_100_is_answered(server):
    with socket.create_connection((server.host, server.port), timeout=20) as s:
        s.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: " + SIZE + b"\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(BODY)
        assert status(s.recv(4096)) == 200


def test_other_expectations_are_refused_and_old_clients_have_none(server):
    rest = b"Content-Length: " + SIZE + b"\r\n\r\n" + BODY
    assert status(server.raw(HEAD + b"Expect: miracles\r\n" + rest)) == 417
    assert status(server.raw(HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Expect: 100-continue\r\n" + rest)) == 200


def test_a_target_may_be_a_whole_address(server):
    """RFC 9112 3.2.2; its host is the one that counts."""

    def ask(target, host="localhost"):
        return server.raw(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())

    for target in ("http://localhost/livez", "HTTP://127.0.0.1:80/livez?x=1", "https://localhost/livez"):
        assert status(ask(target)) == status(ask(target, host="rebound.example")) == 200
    assert ask("http://localhost").partition(b"\r\n\r\n")[2] == ask("/").partition(b"\r\n\r\n")[2] != b""
    assert status(ask("http://rebound.example/livez")) == 403


def test_who_asks_for_a_model_that_is_unloaded_hears_that_there_is_none(tiny_model):
    body = {"prompt": "a", "max_tokens": 2}
    long = {**GOOD, "max_tokens": 450, "min_tokens": 450, "ignore_eos": True, "model": "first"}
    with serving(tiny_model, "--id", "first") as server:

        def unload(name):
            return server.request("POST", "/v1/models/unload", {"id": name})

        def ask(**more):
            code, _, answer = server.request("POST", "/v1/completions", {**body, **more})
            return code, answer["error"]["code"] if code != 200 else answer["model"]

        assert unload("first")[0] == 400  # the only one
        assert ask() == (200, "first")
        assert server.request("POST", "/v1/models/load", {"path": str(tiny_model), "id": "second"})[0] == 200
        with stream(server, long) as s, concurrent.futures.ThreadPoolExecutor(1) as pool:
            unloaded = pool.submit(unload, "first")  # waits for the stream
            seen = {ask(model="first"), ask()}
            while not unloaded.done():
                seen |= {ask(model="first"), ask()}
            assert unloaded.result()[0] == 200
            assert seen <= {(200, "first"), (200, "second"), (404, "model_not_found")}
            got = b""
            while b"[DONE]" not in got:
                got += s.recv(65536)
        assert ask(model="first") == (404, "model_not_found") and ask() == (200, "second")
        assert server.request("GET", "/v1/models/first")[0] == 404


def test_pages_of_other_sites_are_refused(server):
    there = {"Host": f"{server.host}:{server.port}"}
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers={"Origin": "http://evil.example"})[0] == 403
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers={"Content-Type": "text/plain"})[0] == 415
    rebound = {"Host": "rebound.example", "Origin": "http://rebound.example"}
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers=rebound)[0] == 403
    # Under a name of its own, a browser would let such a page read too.
    for path in ("/v1/models", "/metrics", "/", "/livez"):
        for host in (
            "rebound.example",
            "127.0.0.1.rebound.example:80",
            "[fe80::1]",
            "192.168.0.9",
            "localhost.x",
        ):
            code, _, answer = server.request("GET", path, headers={"Host": host})
            assert code == 403 and "--api-key" in answer["error"]["message"], (path, host)
        for host in ("localhost", "LocalHost:1", "127.0.0.1:99", "127.1.2.3", "[::1]", "[::1]:8080"):
            assert server.request("GET", path, headers={"Host": host})[0] == 200
    own = f"http://{server.host}:{server.port}"
    assert server.request("POST", "/tokenize", {"prompt": "a"}, headers={"Origin": own, **there})[0] == 200


def test_other_names_are_answered_where_they_are_no_trick(tiny_model):
    other = {"Host": "models.example"}
    with serving(tiny_model, "--host", "0.0.0.0", "--allow-anonymous") as server:  # everyone who reaches it may use it
        assert server.request("GET", "/v1/models", headers=other)[0] == 200
    with serving(tiny_model, "--api-key", "k") as server:
        assert server.request("GET", "/livez", headers=other)[0] == 200
        assert server.request("GET", "/v1/models", headers=other)[0] == 401
        assert server.request("GET", "/v1/models", headers=other, key="k")[0] == 200


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "0.0.0.0"],
        ["--host", "::"],
        ["--host", "0.0.0.0", "--api-key", "", "--admin-key", ""],
        ["--api-key", ""],
        ["--admin-key", ""],
        ["--api-key", " "],
        ["--config", "empty key"],
    ],
)
def test_a_server_is_not_opened_to_all_by_mistake(tiny_model, tmp_path, options):
    """An unset variable in the documented command gives empty keys."""
    if "--config" in options:
        (tmp_path / "zinc.toml").write_text(f'admin_keys = ["sha256:{hashlib.sha256(b"").hexdigest()}"]\n')
        options = ["--config", str(tmp_path / "zinc.toml")]
    command = [*PROGRAM, "serve", str(tiny_model), "--port", "0", "--state", "none", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and " serves " not in run.stdout
    assert "key" in run.stderr or "--allow-anonymous" in run.stderr, run.stderr


BAD_JSON = [
    b"",
    b"{",
    b"}",
    b"[",
    b"nul",
    b"{]",
    b'{"a"}',
    b'{"a":}',
    b'{"a":1,}',
    b"{'a':1}",
    b'{"a":1}x',
    b'{"a":01}',
    b"NaN",
    b'{"temperature":NaN}',
    b'{"temperature":Infinity}',
    b'{"temperature":1e400}',
    b'{"temperature":-1e400}',
    b'{"seed":99999999999999999999999999}',
    b'{"a":"\xff"}',
    b'{"a":"\xc0\xaf"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\x"}',
    b'{"a":"\n"}',
    b'{"a":"',
    b"\xef\xbb\xbf{",
    b"\xff\xfe{\x00",
    b"[" * 100000,
    b'{"a":' * 100000,
    b'{"messages":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"max_tokens":1,"max_tokens":2}',
    b"5",
    b'"x"',
    b"null",
    b"true",
    b"[]",
    b'{"prompt":"a","prompt":"b"}',
    b"\x00",
    b"{}\x00",
    b'{"\\u0000":1}',
]


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/generate", "/tokenize", "/detokenize", "/apply-template"]
)
@pytest.mark.parametrize("body", BAD_JSON)
def test_bad_json_is_a_400(server, path, body):
    code, _, answer = server.request("POST", path, body)
    assert code == 400, answer
    assert answer["error"]["type"] == "invalid_request_error" and answer["error"]["message"]


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


def stream(server, body, read=1):
    """An open stream that has sent `read` events."""
    s = socket.create_connection((server.host, server.port), timeout=30)
    data = json.dumps({**body, "stream": True}).encode()
    s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    got = b""
    while got.count(b"data: ") < read:
        piece = s.recv(4096)
        assert piece
        got += piece
    return s


def idle(server):
    return server.gauge("zinc:slots_free") == 4 and server.gauge("vllm:num_requests_waiting") == 0


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


def test_tls(tiny_model, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], capture_output=True,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("no openssl program to make a certificate with")
    with serving(tiny_model, "--tls-cert", cert, "--tls-key", key) as server:
        context = ssl.create_default_context(cafile=cert)
        body = json.dumps({**GOOD, "stream": True}).encode()
        with (
            socket.create_connection((server.host, server.port), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as s,
        ):
            s.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            got = b""
            while piece := s.recv(65536):
                got += piece
        assert status(got) == 200 and b"data: [DONE]" in got
        answer = server.raw(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")  # not TLS
        assert not answer.startswith(b"HTTP")
        assert server.process.poll() is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"temperature":1e400}', "the number 1e400 is out of range"),
        (b'{"a":nope}', "invalid literal"),
        (b'{"":1,"prompt":"a"}', '"": this server knows no such field'),
        (b'{"messages":[{"role":"user","content":"a","":1}]}', 'messages[0].""'),
        (b'{"prompt":"a","seed":-9223372036854775809}', "-9223372036854775808 to 9223372036854775807"),
    ],
)
def test_a_complaint_is_in_words_of_its_own(server, body, words):
    path = "/v1/chat/completions" if b"messages" in body else "/v1/completions"
    code, _, answer = server.request("POST", path, body)
    assert code == 400 and words in answer["error"]["message"], answer
    assert "json.exception" not in answer["error"]["message"] and "line 1" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": [5] * 400, "n": 128, "echo": True, "logprobs": 20, "max_tokens": 1}),
        ("/v1/completions", {"prompt": [[5] * 400] * 128, "echo": True, "logprobs": 20, "max_tokens": 1}),
        ("/v1/completions", {"prompt": "x" * 5000, "n": 128, "prompt_logprobs": 20, "max_tokens": 1}),
        ("/v1/completions", {"prompt": ["x" * 9000] * 100, "n": 128, "echo": True, "max_tokens": 1}),
        ("/generate", {"token_ids": [5], "n": 128, "logprobs": 20, "max_tokens": 100000}),
        ("/v1/chat/completions", {**GOOD, "n": 128, "logprobs": True, "top_logprobs": 20, "max_tokens": 100000}),
    ],
)
def test_an_answer_that_would_be_too_large_is_refused_before_it_is_made(tiny_model, tmp_path, path, body):
    config = f'[server]\nmax_answer_bytes = 20000000\n[[models]]\npath = "{tiny_model}"\nmax_slots = 4\n'
    (tmp_path / "zinc.toml").write_text(config)
    with serving("--config", tmp_path / "zinc.toml") as server:
        code, _, answer = server.request("POST", path, body)
        assert code == 400 and answer["error"]["param"] in ("n", "logprobs", "echo", "top_logprobs"), answer
        assert "20000000 allowed (max_answer_bytes)" in answer["error"]["message"]
        few = {**body, "n": 1, "max_tokens": 4}
        if path == "/v1/completions":
            few["prompt"] = [5, 6]
        assert server.request("POST", path, few)[0] == 200


def test_other_clients_find_what_they_ask_for(server):
    for path in ("/models", "/openai/v1/models", "/v1/models"):
        assert server.request("GET", path)[2]["data"][0]["id"] == "tiny"
    assert server.request("GET", "/v1/health")[2] == {"status": "ok"}
    props = server.request("GET", "/props")[2]
    assert props["default_generation_settings"]["n_ctx"] == 512 and props["total_slots"] == 4
    assert "messages" in props["chat_template"]
    for path in ("/openai/v1/chat/completions", "/openai/deployments/tiny/chat/completions?api-version=2024-10-21"):
        code, _, answer = server.request("POST", path, {**GOOD, "model": "tiny"})
        assert code == 200 and answer["choices"][0]["message"]["role"] == "assistant"
    code, _, answer = server.request("POST", "/openai/deployments/other/completions", {"prompt": "a", "model": "tiny"})
    assert code == 404 and answer["error"]["code"] == "model_not_found"
    assert server.request("POST", "/openai/deployments/tiny/completions", {"prompt": "a", "max_tokens": 1})[0] == 200
    assert server.request("POST", "/completion", {"prompt": "a"})[0] == 501


def test_tools_are_taken_where_the_template_reads_them(tmp_path):
    tiny.write(tmp_path / "tools.gguf", template="{% if tools %}{{ tools | tojson }}{% endif %}" + tiny.CHAT_TEMPLATE)
    tiny.write(tmp_path / "plain.gguf")
    models = "".join(f'[[models]]\npath = "{tmp_path / name}.gguf"\nmax_slots = 2\n' for name in ("tools", "plain"))
    (tmp_path / "zinc.toml").write_text(models)
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": None, "strict": None}}]
    with serving("--config", tmp_path / "zinc.toml") as server:
        for path, more in (("/v1/chat/completions", {"max_tokens": 2}), ("/apply-template", {}), ("/tokenize", {})):
            body = {"messages": GOOD["messages"], "tools": tools, **more}
            assert server.request("POST", path, {**body, "model": "tools"})[0] == 200
            code, _, answer = server.request("POST", path, {**body, "model": "plain"})
            assert code == 400 and answer["error"]["param"] == "tools" and "plain" in answer["error"]["message"]
            assert server.request("POST", path, {**body, "model": "plain", "tools": []})[0] == 200
        none = {**GOOD, "model": "plain", "tools": tools, "tool_choice": "none"}
        assert server.request("POST", "/v1/chat/completions", none)[0] == 200


def test_what_others_say_is_one_line_of_the_log(tiny_model, tmp_path):
    log, file = tmp_path / "log", tmp_path / "zinc.toml"
    good = f'[[models]]\npath = "{tiny_model}"\nmax_slots = 2\n'
    file.write_text(good)
    with serving("--config", file, log_path=log) as server:
        file.write_text(good + '[[models]]\npath = "/no\\n12:00:00.000 error \\u001b[31mforged"\nid = "other"\n')
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: "forged" in log.read_text())
    [line] = [line for line in log.read_text().splitlines() if "forged" in line]
    assert "model other was not loaded" in line and "/no\\n12:00:00.000 error \\x1b[31mforged" in line
