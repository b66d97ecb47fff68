"""Bodies that are no JSON, or ask for what there is not: each gets an answer in words."""

import signal

import pytest

import tiny_model as tiny
from http_helpers import GOOD
from server_process import serving


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        yield server


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


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"temperature":1e400}', "temperature: 1e400 is given, 0 to 2 wanted"),
        (b'{"temperature":1e99999}', "the number 1e99999 is out of range"),
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
        ("/v1/completions", {"prompt": [[5]] * 250, "return_logits_hash": True, "max_tokens": 100000}),
        ("/generate", {"token_ids": [5], "n": 128, "logprobs": 20, "max_tokens": 100000}),
        ("/v1/chat/completions", {**GOOD, "n": 128, "logprobs": True, "top_logprobs": 20, "max_tokens": 100000}),
    ],
)
def test_an_answer_that_would_be_too_large_is_refused_before_it_is_made(tiny_model, tmp_path, path, body):
    config = f'[server]\nmax_answer_bytes = 2000000\n[[models]]\npath = "{tiny_model}"\nmax_slots = 4\n'
    (tmp_path / "zinc.toml").write_text(config)
    with serving("--config", tmp_path / "zinc.toml") as server:
        code, _, answer = server.request("POST", path, body)
        assert code == 400 and answer["error"]["param"] in (
            "n",
            "logprobs",
            "return_logits_hash",
            "echo",
            "top_logprobs",
        )
        assert "2000000 allowed (max_answer_bytes)" in answer["error"]["message"]
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
