"""HTTP as clients break it: each bad message gets a 4xx that says what is wrong, and the server goes on."""

import concurrent.futures
import contextlib
import json
import socket

import pytest

from http_helpers import BODY, GOOD, HEAD, SIZE, status, stream
from server_process import serving


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        yield server


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
        assert unload("second")[0] == 200 and ask() == (404, "model_not_found")  # a server may be without a model
        assert server.request("GET", "/readyz")[0] == 200
        assert server.request("POST", "/v1/models/load", {"path": str(tiny_model), "id": "third"})[0] == 200
        assert ask() == (200, "third")
