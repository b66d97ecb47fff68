"""What is a client's to mend is a 4xx that names the field; a 503 is only where trying again helps."""

import pytest

import tiny_model as tiny
from server_process import serving

MESSAGES = [{"role": "user", "content": "hi"}]
MANY = "{% for i in range(9999) %}{% for j in range(9999) %}"
TEMPLATES = {
    "unreadable": "{% if %}",
    "refusing": "{{ raise_exception('no such role') }}",
    "long": MANY + "{{ 'x' * 4096 }}{% endfor %}{% endfor %}",
    "slow": MANY + "{% set x = i * j %}{% endfor %}{% endfor %}",
    "large": "{% set ns = namespace(x='x' * 4096) %}" + MANY + "{% set ns.x = ns.x + ns.x %}{% endfor %}{% endfor %}",
    "deep": "{% macro m(i) %}{{ m(i + 1) }}{% endmacro %}{{ m(0) }}",
}


def assert_final(answer, status=400, param="messages"):
    code, headers, body = answer
    assert (code, body["error"]["param"]) == (status, param), body
    assert "Retry-After" not in headers


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models = []
    for name, template in TEMPLATES.items():
        tiny.write(folder / f"{name}.gguf", template=template)
        models.append(f'[[models]]\npath = "{folder / name}.gguf"\nmax_slots = 2\n')
    tiny.write(folder / "none.gguf", template=None)
    models.append(f'[[models]]\npath = "{folder / "none"}.gguf"\nmax_slots = 2\n')
    (folder / "zinc.toml").write_text("".join(models))
    with serving("--config", folder / "zinc.toml") as server:
        yield server


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/apply-template", "/tokenize"])
@pytest.mark.parametrize("model", [*TEMPLATES, "none"])
def test_a_template_that_cannot_be_used_is_a_400_that_names_the_messages(server, model, path):
    assert_final(server.request("POST", path, {"model": model, "messages": MESSAGES}))
    assert server.request("POST", "/v1/completions", {"model": model, "prompt": "hi", "max_tokens": 1})[0] == 200


def test_a_prompt_that_is_too_long_has_the_words_that_clients_look_for(server):
    body = {"model": "none", "prompt": [5] * 600, "max_tokens": 1}
    answer = server.request("POST", "/v1/completions", body)
    assert_final(answer, param="prompt")
    error = answer[2]["error"]
    assert error["code"] == "context_length_exceeded" and error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"This model's maximum context length is {tiny.CONTEXT} tokens. However, ")
    assert "600 tokens" in error["message"]


def test_so_has_one_that_its_bytes_alone_show_to_be_too_long(server):
    answer = server.request("POST", "/v1/completions", {"model": "none", "prompt": "word " * 50000, "max_tokens": 1})
    assert_final(answer, param="prompt")
    error = answer[2]["error"]
    assert error["code"] == "context_length_exceeded" and "at least" in error["message"]
    assert error["message"].startswith(f"This model's maximum context length is {tiny.CONTEXT} tokens. However, ")


def test_what_is_not_there_is_not_asked_for_again(server):
    for path in ("/v1/audio/speech", "/v1/moderations"):
        code, headers, body = server.request("POST", path, {})
        assert code == 501 and headers["x-should-retry"] == "false" and body["error"]["code"] == "not_implemented"
    code, headers, body = server.request("POST", "/v1/chat/completions", {"model": "other", "messages": MESSAGES})
    assert (code, body["error"]["code"], body["error"]["param"]) == (404, "model_not_found", "model")
