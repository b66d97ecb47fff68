"""What the server says of each request: its access log, and the fields that a tolerant server passes over."""

import http.client
import json
import pathlib
import re
import subprocess

import pytest

from http_helpers import GOOD
from server_process import PROGRAM, serving

DOCS = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "server.md").read_text()
LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?P<address>\S+) (?P<tenant>\S+) (?P<method>\S+)"
    r' (?P<path>"(?:[^"\\]|\\.)*"|\S+) (?P<status>\d{3}) (?P<bytes>\d+) bytes (?P<ms>[\d.]+) ms(?P<rest>.*)'
)
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def logged(tiny_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "stderr"
    with serving(tiny_model, "--id", "tiny", "--tolerant", log_path=path) as server:
        server.lines = lambda: path.read_text(errors="strict").splitlines()
        yield server


def line_of(server, part):
    """The one line with these words, once it is there."""
    found = []
    server.wait(lambda: found.extend(line for line in server.lines() if part in line) or found)
    assert len(found) == 1, found
    match = LINE.fullmatch(found[0])
    assert match, found[0]
    return match


def rest_of(match):
    return dict(re.findall(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)', match["rest"]))


@pytest.mark.parametrize("stream", [False, True])
def test_a_generation(logged, stream):
    name = f"generation-{stream}"
    good = {**GOOD, "stream": stream, "ignore_eos": True}  # the random model may draw the end of a text
    status, headers, body = logged.request("POST", CHAT, good, headers={"x-request-id": name})
    line = line_of(logged, f"request_id={name}")
    assert (line["address"], line["tenant"], line["method"]) == ("127.0.0.1", "default", "POST")
    assert (line["path"], line["status"]) == (CHAT, "200")
    assert float(line["ms"]) > 0 and int(line["bytes"]) > 100
    rest = rest_of(line)
    assert (rest["model"], rest["finish"]) == ("tiny", "length")
    assert int(rest["prompt_tokens"]) > 0
    if not stream:
        assert int(rest["completion_tokens"]) == body["usage"]["completion_tokens"]
        assert rest["id"] == body["id"]


REFUSED = {
    "no such path": (404, "GET", "/nothing-here"),
    "not there yet": (501, "POST", "/v1/moderations"),
    "another method": (405, "PUT", "/tokenize"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_by_its_head(logged, name):
    code, method, path = REFUSED[name]
    assert logged.request(method, path, {} if method != "GET" else None)[0] == code
    line = line_of(logged, f" {method} {path} ")
    assert line["status"] == str(code) and "error=" in line["rest"]


def test_what_is_no_http_or_no_good_body(logged):
    logged.raw(b"NO SUCH PROTOCOL\r\n\r\n")
    assert line_of(logged, " - - 400 ")["bytes"] != "0"
    assert logged.request("POST", CHAT, b"{", headers={"x-request-id": "half"})[0] == 400
    assert line_of(logged, "request_id=half")["status"] == "400"


def test_a_client_cannot_forge_a_line(logged):
    """The path comes decoded, and names of fields as they are: none may end a line or begin a field."""
    forged = "/x%0A2026-01-01T00:00:00.000Z%20forged%1B%5B31m%C2%9B%E2%80%AE%22%20status=200"
    assert logged.request("GET", forged)[0] == 404
    line = line_of(logged, "forged")
    assert line["status"] == "404"
    assert "\\n" in line["path"] and "\\u001b" in line["path"] and "\\u202e" in line["path"]
    assert all(" " <= c <= "~" for text in logged.lines() for c in text)
    evil = {**GOOD, "a\nb forged2=": 1}
    assert logged.request("POST", CHAT, evil, headers={"x-request-id": "evil"})[0] == 200
    assert rest_of(line_of(logged, "request_id=evil"))["ignored_fields"] == "a%0Ab%20forged2%3D"


def test_health_probes_are_left_out_unless_they_fail(tiny_model, tmp_path, logged):
    logged.request("GET", "/livez", headers={"x-request-id": "probe"})
    logged.request("GET", "/version", headers={"x-request-id": "after-probe"})
    line_of(logged, "request_id=after-probe")
    assert not any("request_id=probe" in line for line in logged.lines())
    path = tmp_path / "all"
    with serving(tiny_model, "--access-log", "all", "--log-format", "json", log_path=path) as server:
        server.request("GET", "/livez")
        server.request("POST", CHAT, GOOD)
        server.request("GET", "/%0A%22")
        server.wait(lambda: path.read_text().count("\n") == 3)
        probe, chat, odd = map(json.loads, path.read_text().splitlines())
    assert (probe["path"], probe["status"], probe["tenant"], probe["complete"]) == ("/livez", 200, None, True)
    assert chat["prompt_tokens"] > 0 and chat["tenant"] == "default" and chat["ms"] > 0
    assert odd["path"] == '/\n"' and odd["status"] == 404


def test_it_can_be_switched_off(tiny_model, tmp_path):
    (tmp_path / "zinc.toml").write_text('[server]\naccess_log = "off"\n')
    path = tmp_path / "off"
    with serving(tiny_model, "--config", tmp_path / "zinc.toml", log_path=path) as server:
        assert server.request("GET", "/nothing")[0] == 404
    assert path.read_text() == ""
    (tmp_path / "zinc.toml").write_text('[server]\naccess_log = "loud"\n')
    command = [*PROGRAM, "serve", str(tiny_model), "--config", str(tmp_path / "zinc.toml"), "--port", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "access_log" in run.stderr and "line 2" in run.stderr


def test_nobody_waits_for_a_log_that_nobody_reads(tiny_model):
    """64 KiB fill the pipe of stderr; requests beyond are served all the same."""
    command = [*PROGRAM, "serve", str(tiny_model), "--port", "0", "--state", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            port = re.search(rb":(\d+) serves", process.stdout.readline())[1].decode()
            for _ in range(60):
                connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
                connection.request("GET", "/" + "x" * 2000)
                assert connection.getresponse().status == 404
                connection.close()
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_unknown_fields_are_refused_or_named(tiny_model, logged):
    more = {**GOOD, "frobnicate": 1, "stream_options": {"huh": True}, "stream": True}
    more["messages"] = [{"role": "user", "content": "a", "mood": "good"}]
    status, headers, _ = logged.request("POST", CHAT, more, headers={"x-request-id": "tolerated"})
    assert status == 200
    names = headers["x-zinc-ignored-fields"].split(", ")
    assert sorted(names) == ["frobnicate", "messages[0].mood", "stream_options.huh"]
    assert "frobnicate" in rest_of(line_of(logged, "request_id=tolerated"))["ignored_fields"]
    many = {**GOOD, **{f"field{i}": i for i in range(1000)}}
    names = logged.request("POST", CHAT, many)[1]["x-zinc-ignored-fields"].split(", ")
    assert names == [f"field{i}" for i in range(32)]
    assert "x-zinc-ignored-fields" not in logged.request("POST", CHAT, GOOD)[1]
    # What is known and not served would change the answer, and a quota's misspelt name would be no quota.
    assert logged.request("POST", CHAT, {**GOOD, "audio": {"voice": "x", "format": "wav"}})[0] == 400
    assert logged.request("POST", "/v1/tenants", {"id": "a", "max_concurent_slots": 1})[0] == 400
    with serving(tiny_model) as strict:
        status, headers, body = strict.request("POST", CHAT, {**GOOD, "frobnicate": 1})
        assert (status, body["error"]["param"]) == (400, "frobnicate")


def test_fields_that_are_read_and_not_used(logged):
    """As docs/server.md lists them: their values change nothing."""
    names = re.findall(r"^\| `(\w+)` \| chat,.*\| read, checked and not used", DOCS, re.MULTILINE)
    assert len(names) >= 4
    ask = {**GOOD, "temperature": 0}
    plain = logged.request("POST", CHAT, ask)[2]["choices"]
    for name in names:
        value = {"a": "b"} if name == "metadata" else "something"
        status, headers, body = logged.request("POST", CHAT, {**ask, name: value})
        assert (status, body["choices"]) == (200, plain), name
        assert "x-zinc-ignored-fields" not in headers


def test_curl_needs_no_content_type(logged):
    body = json.dumps(GOOD)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert logged.request("POST", CHAT, body, headers=form)[0] == 200
    own = f"http://{logged.host}:{logged.port}"
    for sent_by_browsers in ({"Origin": own}, {"Referer": own + "/"}, {"Sec-Fetch-Site": "same-origin"}):
        assert logged.request("POST", CHAT, body, headers={**form, **sent_by_browsers})[0] == 415
    for origin in ("null", "http://evil.example"):
        assert logged.request("POST", CHAT, body, headers={**form, "Origin": origin})[0] == 403
