"""What a server makes of files that others write: templates of several kinds, names of keys, normalizers."""

import json
import subprocess
import unicodedata

import numpy as np
import pytest

import tiny_model as tiny
from server_process import PROGRAM, serving

PARTS = (
    "{% for m in messages %}<|start|>{{ m.role }}{% if m['content'][0]['type'] == 'image' %}:{% endif %} "
    "{% for p in m['content'] | selectattr('type', 'equalto', 'text') %}{{ p['text'] }}{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant {% endif %}"
)
TOOL = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}}}
TEXTS = [{"type": "text", "text": "alpha"}, {"type": "text", "text": "omega"}]
USER = [{"role": "user", "content": "hello there"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Models by the name of what is particular about their file."""
    folder = tmp_path_factory.mktemp("files")
    named = {
        "tokenizer.chat_templates": ["tool_use", "rag"],
        "tokenizer.chat_template.tool_use": (
            "TOOLS{% for t in tools %} {{ t.function.name }}{% endfor %} {{ messages[0].content }}"
        ),
        "tokenizer.chat_template.rag": "RAG {{ messages[0].content }}",
    }
    files = {
        "parts": {"template": PARTS},
        "named": {"keys": named},
        "no_default": {"template": None, "keys": named},
        "empty": {"template": ""},
        "silent": {"template": "{% for m in messages %}{% endfor %}"},
        "adds_bos": {"keys": {"tokenizer.ggml.add_bos_token": True}, "template": "{{ messages[0].content }}"},
        "nfc": {"keys": {"tokenizer.ggml.pre": "qwen2"}},
    }
    for name, file in files.items():
        tiny.write(folder / f"{name}.gguf", **file)
    settings = "".join(
        f'[[models]]\nid = "{name}"\npath = "{folder / name}.gguf"\nmax_context = 512\nmax_slots = 2\n'
        for name in files
    )
    (folder / "zinc.toml").write_text(settings)
    with serving("--config", folder / "zinc.toml") as server:
        yield server


def prompt_of(server, model, messages, **more):
    status, _, answer = server.request("POST", "/apply-template", {"model": model, "messages": messages, **more})
    return answer["prompt"] if status == 200 else (status, answer["error"]["message"])


def chat_tokens(server, path, body):
    status, _, answer = server.request("POST", path, body)
    assert status == 200, answer
    usage = answer.get("usage", answer)
    found = next(usage[name] for name in ("prompt_tokens", "input_tokens", "prompt_eval_count") if name in usage)
    return found + usage.get("cache_read_input_tokens", 0)  # Anthropic's API counts these apart


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("content, wanted", [("alpha", "alpha"), (TEXTS[:1], "alpha"), (TEXTS, "alphaomega")])
def test_a_template_that_takes_parts_alone_loses_no_text(server, role, content, wanted):
    messages = [{"role": role, "content": content}, *USER]
    assert prompt_of(server, "parts", messages) == (
        f"<|start|>{role} {wanted}<|end|><|start|>user hello there<|end|><|start|>assistant "
    )


def test_each_api_gives_the_template_what_it_takes(server):
    """The same words: as many tokens, whatever API they came by."""
    known = {"model": "parts", "max_tokens": 1}
    long = "hello there " * 20
    ask = {"messages": [{"role": "user", "content": long}]}
    whole = chat_tokens(server, "/v1/chat/completions", {**known, **ask})
    assert whole > 100, "the text is in the prompt"
    assert chat_tokens(server, "/v1/messages", {**known, **ask}) == whole
    assert chat_tokens(server, "/v1/responses", {"model": "parts", "input": long, "max_output_tokens": 1}) == whole
    ollama = {"model": "parts", "stream": False, "options": {"num_predict": 1}}
    assert chat_tokens(server, "/api/chat", {**ollama, **ask}) == whole
    assert chat_tokens(server, "/api/generate", {**ollama, "prompt": long}) == whole


def test_parts_of_an_answer_are_continued(server):
    messages = [*USER, {"role": "assistant", "content": TEXTS}]
    assert prompt_of(server, "parts", messages, continue_final_message=True).endswith("<|start|>assistant alphaomega")


def test_the_template_for_tools_is_used_with_tools(server):
    assert prompt_of(server, "named", USER, tools=[TOOL]) == "TOOLS add hello there"
    assert prompt_of(server, "named", USER).startswith("<|start|>user: hello there")
    assert prompt_of(server, "no_default", USER, tools=[TOOL]) == "TOOLS add hello there"
    status, message = prompt_of(server, "no_default", USER)
    assert status == 400
    assert "no default" in message and "tool_use, rag" in message


@pytest.mark.parametrize("model, says", [("empty", "is empty"), ("silent", "writes nothing")])
def test_a_template_that_gives_no_prompt_is_named(server, model, says):
    body = {"model": model, "messages": USER, "max_tokens": 1}
    for path in ("/v1/chat/completions", "/v1/messages", "/apply-template", "/tokenize"):
        fields = {k: v for k, v in body.items() if k != "max_tokens" or path.startswith("/v1")}
        status, _, answer = server.request("POST", path, fields)
        assert status == 400, path
        assert says in answer["error"]["message"] and "chat_template" in answer["error"]["message"], path


def test_tokens_are_counted_as_they_are_charged(server):
    for model in ("adds_bos", "parts", "named"):
        body = {"model": model, "messages": USER}
        status, _, answer = server.request("POST", "/tokenize", body)
        assert status == 200, answer
        charged = chat_tokens(server, "/v1/chat/completions", {**body, "max_tokens": 1})
        assert answer["count"] == len(answer["tokens"]) == charged, model
        text = {"model": model, "prompt": "hello there"}
        _, _, counted = server.request("POST", "/tokenize", text)
        assert counted["count"] == chat_tokens(server, "/v1/completions", {**text, "max_tokens": 1}), model
    without = server.request("POST", "/tokenize", {"model": "adds_bos", "messages": USER, "add_special_tokens": False})
    assert (
        without[2]["count"] + 1
        == server.request("POST", "/tokenize", {"model": "adds_bos", "messages": USER})[2]["count"]
    )


def test_text_is_normalized_as_unicodedata_does(server):
    """Over all code points: alone, after a letter, and in other forms. Tables and Python may be of different age."""
    known = [c for c in map(chr, range(0x110000)) if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Cc", "Co")]
    marks = [c for c in known if unicodedata.combining(c)]
    decomposed = unicodedata.normalize("NFD", "".join(known))
    texts = ["x".join(known), "".join(known), decomposed, "".join(reversed(decomposed)), "e" + "".join(marks) * 3]
    for text in texts:
        for at in range(0, len(text), 200_000):
            part = text[at : at + 200_000]
            _, _, ids = server.request("POST", "/tokenize", {"model": "nfc", "prompt": part})
            _, _, back = server.request("POST", "/detokenize", {"model": "nfc", "tokens": ids["tokens"]})
            assert back["prompt"] == unicodedata.normalize("NFC", part)


@pytest.mark.parametrize(
    "key, value",
    [
        ("llama.rope.scaling.yarn_log_multiplier", 0.1),
        ("llama.attention.clamp_kqv", 8.0),
        ("llama.residual_scale", 0.5),
        ("llama.rope.no_such_key", 1),
    ],
)
def test_a_key_that_is_not_computed_with_is_refused_by_name(tmp_path, key, value):
    path = tmp_path / "model.gguf"
    tiny.write(path, keys={key: value})
    ran = subprocess.run([*PROGRAM, "run", str(path), "-p", "hello", "-n", "1"], capture_output=True, text=True)
    assert ran.returncode != 0
    assert f'key "{key}"' in ran.stderr


@pytest.mark.parametrize(
    "tensor, is_left_out", [("v.blk.0.attn_q.weight", True), ("mm.0.weight", True), ("blk.0.x", False)]
)
def test_tensors_of_parts_that_are_not_run_are_left_out(tmp_path, tensor, is_left_out):
    path = tmp_path / "model.gguf"
    tiny.write(path, more={tensor: np.zeros((4, 4), np.float32)})
    ran = subprocess.run([*PROGRAM, "run", str(path), "-p", "hello", "-n", "1"], capture_output=True, text=True)
    assert (ran.returncode == 0) == is_left_out, ran.stderr
    assert is_left_out or f'tensor "{tensor}"' in ran.stderr


def test_a_vocabulary_without_a_pre_tokenizer_is_warned_of(tmp_path):
    path = tmp_path / "model.gguf"
    tiny.write(path, keys={"tokenizer.ggml.pre": None})
    ran = subprocess.run([*PROGRAM, "tokenize", str(path), "hello"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "tokenizer.ggml.pre is missing" in ran.stderr


def test_a_folder_keeps_the_ends_that_a_file_lists(tmp_path):
    path = tmp_path / "model.gguf"
    tiny.write(path, keys={"tokenizer.ggml.eos_token_ids": [5, 7]}, template=None)
    ran = subprocess.run([*PROGRAM, "convert", str(path), str(tmp_path / "folder")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    config = json.loads((tmp_path / "folder" / "mlc-chat-config.json").read_text())
    assert {5, 7} < set(config["eos_token_id"])
