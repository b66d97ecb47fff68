"""Errors have the form of the API that their path is of, at every status, whoever finds them."""

import json

import pytest

import tiny_model
from server_process import serving

BIG = 40_000
OPENAI, ANTHROPIC, OLLAMA = "openai", "anthropic", "ollama"
PATHS = {
    "/v1/chat/completions": OPENAI,
    "/v1/responses": OPENAI,
    "/v1/embeddings": OPENAI,
    "/v1/nothing": OPENAI,
    "/apis": OPENAI,
    "/v1/messages": ANTHROPIC,
    "/v1/messages/count_tokens": ANTHROPIC,
    "/openai/v1/messages": ANTHROPIC,
    "/v1/messages/nothing": ANTHROPIC,
    "/api/chat": OLLAMA,
    "/api/generate": OLLAMA,
    "/api/embed": OLLAMA,
    "/api/show": OLLAMA,
    "/api/nothing": OLLAMA,
}
SERVED = [path for path in PATHS if "nothing" not in path and path != "/apis"]
TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    tiny_model.write(path)
    config = path.with_name("zinc.toml")
    config.write_text(f'[[models]]\npath = "{path}"\nid = "m"\n[server]\nmax_body_bytes = {BIG}\n')
    with serving("--config", config, "--api-key", "key", "--admin-key", "admin") as server:
        yield server


def form(answer):
    if answer.keys() == {"type", "error"} and answer["type"] == "error":
        assert answer["error"].keys() == {"type", "message"} and answer["error"]["message"]
        return ANTHROPIC
    if answer.keys() == {"error"} and isinstance(answer["error"], str):
        assert answer["error"]
        return OLLAMA
    assert answer["error"].keys() == {"message", "type", "param", "code"}, answer
    return OPENAI


def check(path, status, answer, wanted):
    assert status == wanted, (path, status, answer)
    assert form(answer) == PATHS[path], (path, status, answer)
    if PATHS[path] == ANTHROPIC:
        assert answer["error"]["type"] == TYPES.get(status, "invalid_request_error")


# How a request fails: status, method, body, key, headers.
FAILURES = {
    "no JSON": (400, "POST", "{", "key", {}),
    "no object": (400, "POST", "[]", "key", {}),
    "unknown field": (400, "POST", '{"nothing": 1}', "key", {}),
    "no key": (401, "POST", "{}", None, {}),
    "wrong key": (401, "POST", "{}", "other", {}),
    "another method": (405, "PATCH", "{}", "key", {}),
    "a form": (415, "POST", "a=b", "key", {"Content-Type": "text/plain"}),
    "an encoding": (415, "POST", "{}", "key", {"Content-Encoding": "gzip"}),
    "too large": (413, "POST", " " * (BIG + 1), "key", {}),
    "an origin": (403, "POST", "{}", None, {"Origin": "https://other.example", "Content-Type": "text/plain"}),
}


@pytest.mark.parametrize("path", SERVED)
@pytest.mark.parametrize("failure", FAILURES)
def test_form_by_path(server, path, failure):
    wanted, method, body, key, headers = FAILURES[failure]
    status, _, answer = server.request(method, path, body, key, headers)
    if failure == "an origin":  # with keys it is the key that is missing, or the type that is wrong
        wanted = status if status in (401, 403, 415) else 403
    check(path, status, answer, wanted)


def test_an_admins_key_generates_nothing(server):
    for path in SERVED:
        if path not in ("/api/show", "/v1/messages/count_tokens"):
            status, _, answer = server.request("POST", path, {}, "admin")
            check(path, status, answer, 403)


@pytest.mark.parametrize("path", [path for path in PATHS if path not in SERVED])
def test_paths_that_are_not_there(server, path):
    for method in ("GET", "POST"):
        status, _, answer = server.request(method, path, None if method == "GET" else "{}", "key")
        check(path, status, answer, 404)


def test_ollamas_paths_that_are_not_served(server):
    status, _, answer = server.request("POST", "/api/pull", "{}", "key")
    assert (status, form(answer)) == (501, OLLAMA)


def test_unknown_model(server):
    bodies = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}]},
        "/v1/messages": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
        "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "a"}]},
        "/v1/responses": {"input": "a"},
        "/api/chat": {"messages": [{"role": "user", "content": "a"}]},
        "/api/generate": {"prompt": "a"},
        "/api/generate ": {"prompt": "", "keep_alive": 0},
        "/api/embed": {"input": "a"},
        "/api/show": {},
    }
    for path, body in bodies.items():
        status, _, answer = server.request("POST", path.strip(), {"model": "other", **body}, "key")
        check(path.strip(), status, answer, 404)


def bad_http(path):
    """Requests that no handler sees, by the status of their answers."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\n"
    length = "Authorization: Bearer key\r\nContent-Type: application/json\r\nContent-Length: "
    return [
        (400, head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        (400, head + "bad header: x\r\n\r\n"),
        (400, f"POST {path}?x=1 HTTP/1.1\r\n\r\n"),
        (400, f"POST http://a{path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, head + "Transfer-Encoding: gzip\r\n\r\n"),
        (431, head + "X-Long: " + "a" * 40_000 + "\r\n\r\n"),
        (413, head + length + f"{BIG + 1}\r\n\r\n"),
    ]


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", "/v1/chat/completions"])
@pytest.mark.parametrize("number", range(len(bad_http(""))))
def test_bad_http(server, path, number):
    wanted, text = bad_http(path)[number]
    answer = server.raw(text.encode(), timeout=10)
    head, _, body = answer.partition(b"\r\n\r\n")
    check(path, int(head.split()[1]), json.loads(body), wanted)


def test_beyond_a_tenants_rate(server):
    made = server.request("POST", "/v1/tenants", {"id": "slow", "requests_per_minute": 1}, key="admin")[2]["api_key"]
    chat = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    bodies = {
        "/v1/chat/completions": {**chat, "max_tokens": 1},
        "/v1/messages": {**chat, "max_tokens": 1},
        "/api/chat": {**chat, "stream": False, "options": {"num_predict": 1}},
        "/api/embed": {"model": "m", "input": "a"},
    }
    assert server.request("POST", "/v1/chat/completions", bodies["/v1/chat/completions"], made)[0] == 200
    for path, body in list(bodies.items())[:3]:
        status, headers, answer = server.request("POST", path, body, made)
        assert (status, form(answer)) == (429, PATHS[path]) and "Retry-After" in headers
    # Where the model is the wrong one for the path.
    status, _, answer = server.request("POST", "/api/embed", bodies["/api/embed"], "key")
    assert (status, form(answer)) == (400, OLLAMA)
