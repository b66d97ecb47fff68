"""Who may reach a server, and from where: other sites' pages, other names, TLS."""

import hashlib
import json
import socket
import ssl
import subprocess

import pytest

from http_helpers import GOOD, HEAD, status
from server_process import PROGRAM, serving


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        yield server


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
