"""What a replica of zinc_rt.ray does with its server, without Ray."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from zinc_rt import errors
from zinc_rt.ray.__main__ import is_loopback, main
from zinc_rt.ray.call import Call
from zinc_rt.ray.server import Server, program

BODY = {"prompt": [5] * 40, "max_tokens": 6, "ignore_eos": True, "temperature": 0}


def call(body=None, method="POST", target="/v1/completions", headers=()):
    fields = [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers]
    return Call(method, target, fields, b"" if body is None else json.dumps(body).encode())


@pytest.fixture(scope="module")
def server(tiny_model):
    ends = []
    server = Server([str(tiny_model), "--max-slots", "2"], ends.append)
    yield server
    server.stop()
    assert server.process.returncode == 0 and not ends


def answer(server, one):
    async def read():
        pieces = [piece async for piece in server.pass_on(one)]
        return *pieces[0], b"".join(pieces[1:])

    status, fields, body = asyncio.run(read())
    return status, dict(fields), body


def wait(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_answers_are_passed_on_as_they_are(server):
    status, fields, body = answer(server, call(BODY, headers=[(b"x-request-id", b"mine"), (b"connection", b"close")]))
    assert status == 200 and fields["x-request-id"] == "mine" and "connection" not in fields
    assert json.loads(body)["usage"]["completion_tokens"] == 6
    status, fields, body = answer(server, call({**BODY, "stream": True}))
    assert fields["content-type"].startswith("text/event-stream") and body.endswith(b"data: [DONE]\n\n")
    assert answer(server, call({"prompt": 3.5}))[0] == 400
    assert answer(server, call(method="GET", target="/nowhere?x=1"))[0] == 404
    status, fields, body = answer(server, call(method="HEAD", target="/v1/models"))
    assert status == 200 and int(fields["content-length"]) > 0 and body == b""


def test_a_stream_comes_piece_by_piece_and_to_leave_it_ends_its_request(server):
    async def leave():
        # So many choices that the tiny model fills both slots until it is asked for its load.
        answer = server.pass_on(call({**BODY, "max_tokens": 100000, "n": 64, "stream": True}))
        assert (await anext(answer))[0] == 200
        assert (await anext(answer)).startswith(b"data: ")
        assert (await server.load())["running"] == 2
        await answer.aclose()

    asyncio.run(leave())
    wait(lambda: asyncio.run(server.load())["running"] == 0)


def test_health_and_load(server):
    asyncio.run(server.check())
    load = asyncio.run(server.load())
    assert load["backlog_tokens"] == 0 and load["pages"] > 0
    assert not server.wants_keys()


def test_a_server_with_keys_wants_them(tiny_model):
    server = Server([str(tiny_model), "--api-key", "k"], print)
    try:
        assert server.wants_keys()
        asyncio.run(server.check())
        assert answer(server, call(BODY))[0] == 401
        assert answer(server, call(BODY, headers=[(b"authorization", b"Bearer k")]))[0] == 200
    finally:
        server.stop()


def test_an_open_server_answers_to_loopback_names_unless_it_is_told_otherwise(tiny_model):
    statuses = []
    for any_host in (False, True):
        server = Server([str(tiny_model)], print, any_host)
        try:
            elsewhere = Call("GET", "/v1/models", [(b"host", b"fleet.example:8000")], b"")
            statuses.append(answer(server, elsewhere)[0])
        finally:
            server.stop()
    assert statuses == [403, 200]


def test_an_end_that_nobody_asked_for_is_told(tiny_model):
    told, codes = threading.Event(), []
    server = Server([str(tiny_model)], lambda code: (codes.append(code), told.set()))
    server.process.kill()
    assert told.wait(30) and codes == [-signal.SIGKILL]
    with pytest.raises(errors.Unavailable, match="gone"):
        asyncio.run(server.check())


def test_a_replica_that_is_killed_leaves_no_server(tiny_model):
    script = f"""
import time
from zinc_rt.ray.server import Server
print(Server([{str(tiny_model)!r}], print).process.pid, flush=True)
time.sleep(1000)
"""
    replica = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(replica.stdout.readline())
    replica.kill()
    replica.wait()
    replica.stdout.close()
    wait(lambda: not os.path.exists(f"/proc/{pid}") or " Z " in open(f"/proc/{pid}/stat").read())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "1"],
        ["--host=0.0.0.0"],
        ["--state", "x"],
        ["--metrics-listen", "x"],
        ["--tls-key=x"],
        ["--ready-fd", "3"],
    ],
)
def test_what_a_replica_gives_itself_is_refused(tiny_model, arguments):
    with pytest.raises(errors.InvalidArgument, match=arguments[0].split("=")[0]):
        Server([str(tiny_model), *arguments], print)


def test_a_server_that_does_not_start(tmp_path):
    with pytest.raises(errors.Unavailable, match="did not start"):
        Server([str(tmp_path / "none.gguf")], print)


def test_tls_within_a_replica_is_refused(tiny_model, tmp_path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "1"]
        + ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    config = tmp_path / "zinc.toml"
    tls = f'tls_cert = "{tmp_path}/cert.pem"\ntls_key = "{tmp_path}/key.pem"\n'
    config.write_text(f'[server]\n{tls}[[models]]\npath = "{tiny_model}"\n')
    with pytest.raises(errors.Unavailable, match="TLS"):
        Server(["--config", str(config)], print)


def test_the_program_is_this_packages_unless_another_is_named(monkeypatch):
    monkeypatch.delenv("ZRT_PROGRAM", raising=False)
    assert program() == [sys.executable, "-m", "zinc_rt"]
    monkeypatch.setenv("ZRT_PROGRAM", "/a/zinc-rt --x")
    assert program() == ["/a/zinc-rt", "--x"]


def test_only_an_address_of_this_machine_may_be_without_keys():
    assert all(map(is_loopback, ["127.0.0.1", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "192.0.2.1", "::", "a.example"]))


@pytest.mark.parametrize("where", [["--host", "0.0.0.0"], ["--address", "auto"]], ids=" ".join)
def test_who_may_be_reached_by_others_needs_a_key(monkeypatch, capsys, where):
    monkeypatch.delenv("ZINC_RT_API_KEY", raising=False)
    assert main(["model.gguf", *where, "--", "--max-slots", "2"]) == 1
    assert "a key is wanted" in capsys.readouterr().err


def test_without_ray_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["model.gguf"]) == 1
    assert 'pip install "zinc_rt[ray]"' in capsys.readouterr().err
