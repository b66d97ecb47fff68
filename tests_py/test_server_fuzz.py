"""Mutated bodies and raw streams over the socket: no crash, no hang, no 5xx, and every refusal says what is wrong.

ZRT_FUZZ_N: how many of each; ZRT_FUZZ_SEED: where they begin. The parsers alone are fuzzed by tests_cpp/fuzz.
"""

import asyncio
import copy
import json
import os
import random

import pytest

import tiny_model as tiny
from server_process import serving

N = int(os.environ.get("ZRT_FUZZ_N", "20000"))
SEED = int(os.environ.get("ZRT_FUZZ_SEED", "1"))
WORKERS = 16

BODIES = {
    "/v1/chat/completions": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "user", "content": "and?"},
        ],
        "max_tokens": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "n": 1,
        "stop": ["x", "y"],
        "logprobs": True,
        "top_logprobs": 2,
        "logit_bias": {"5": 3, "7": -100},
        "seed": 4,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "s", "schema": {"type": "object", "properties": {"a": {"pattern": "^[a-z]{2}$"}}}},
        },
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "tool_choice": "auto",
        "chat_template_kwargs": {"a": [1, {"b": None}]},
    },
    "/v1/completions": {
        "prompt": ["one", "two"],
        "max_tokens": 2,
        "echo": True,
        "logprobs": 1,
        "suffix": None,
        "best_of": 1,
        "stream": True,
        "stream_options": {"include_usage": True, "resumable": True},
        "presence_penalty": 0.5,
        "deadline_ms": 5000,
        "cache_salt": "s",
        "service_tier": "flex",
        "guided_regex": "[0-9]+(a|b)?",
    },
    "/openai/deployments/tiny/chat/completions": {
        "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 2,
        "response_format": {
            "type": "structural_tag",
            "structures": [{"begin": "<a>", "schema": {"type": "integer"}, "end": "</a>"}],
            "triggers": ["<"],
        },
    },
    "/openai/deployments/tiny/completions": {
        "prompt": "a",
        "max_tokens": 2,
        "structured_outputs": {
            "structural_tag": {
                "format": {
                    "type": "sequence",
                    "elements": [
                        {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": ["</a>", "!"]},
                        {"type": "repeat", "min": 0, "max": 2, "content": {"type": "regex", "pattern": "[ab]"}},
                        {"type": "or", "elements": [{"type": "const_string", "value": "x"}]},
                    ],
                }
            }
        },
    },
    "/v1/messages": {
        "max_tokens": 2,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]},
        ],
        "stop_sequences": ["x"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "stream": False,
    },
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "a"}]},
    "/v1/responses": {
        "max_output_tokens": 2,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "aG0="},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
        ],
        "text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "integer"}}},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    },
    "/api/chat": {
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "thinking": "b", "tool_calls": []}],
        "options": {"num_predict": 2, "temperature": 0.5, "stop": ["x"], "num_ctx": 64},
        "think": False,
        "format": {"type": "object", "properties": {"a": {"enum": [1, "b"]}}},
        "keep_alive": "5m",
    },
    "/api/generate": {"prompt": "a", "system": "b", "raw": False, "stream": False, "options": {"num_predict": 2}},
    "/api/show": {"model": "tiny"},
    "/generate": {"token_ids": [1, 2, 3], "max_tokens": 2, "stop_token_ids": [5], "return_logits_hash": True},
    "/v1/embeddings": {"input": ["a", [1, 2]], "encoding_format": "base64", "dimensions": 8, "user": "u"},
    "/v1/rerank": {"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True},
    "/v1/score": {"text_1": "a", "text_2": ["b", "c"], "user": "u"},
    "/tokenize": {"prompt": "some text", "add_special_tokens": True},
    "/detokenize": {"tokens": [1, 2, 3]},
    "/apply-template": {"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": False},
    "/v1/models/load": {"path": "/nonexistent.gguf", "id": "x", "max_slots": 1},
    "/v1/tenants": {"id": "t", "settings": {"weight": 1.0}},
}
ATOMS = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 1e308, -1e-320, 0.5, "", "a", "\u0000",
    "\ud7ff\U0001f600", "x" * 5000, [], {}, [[]], [None], {"": {}}, [1, "a", {}], "NaN", "true",
    {"type": "json_schema"},
]  # fmt: skip
POST = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
RAW = [
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    POST + b'Content-Length: 14\r\n\r\n{"prompt":"a"}',
    POST + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"pro\r\n9;x=y\r\nmpt":"a"}\r\n0\r\nTrailer: b\r\n\r\n',
    b"GET /v1/models HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: http://b\r\nExpect: 100-continue\r\n\r\n",
    b"HEAD /ui/app.js HTTP/1.1\r\nHost: [::1]:80\r\nAccept-Encoding: gzip\r\nIf-None-Match: x\r\n\r\n",
]
PIECES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"/", b"%", b"%00", b"%2e%2e/", b"?", b"#", b"HTTP/1.1",
    b"HTTP/9.9",
    b"Content-Length: 5\r\n", b"Content-Length: 18446744073709551616\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Connection: close\r\n", b"Host: b\r\n", b" folded\r\n",
    b"ffffffffffffffff\r\n", b"-1\r\n",
    b"\xff\xfe", b"A" * 3000, b"{", b"}", b"0\r\n\r\n",
]  # fmt: skip


def places(value, path=()):
    """Where something can be changed, as paths."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, (*path, i))


def mutated_body(rng):
    path = rng.choice(list(BODIES))
    body = json.loads(json.dumps(BODIES[path]))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        at = rng.choice(list(places(body)))
        if not at:
            continue
        inner = body
        for step in at[:-1]:
            inner = inner[step]
        what = rng.randrange(4)
        if what == 0:
            del inner[at[-1]]
        elif what == 1 and isinstance(inner, dict):
            inner[rng.choice(["", "model", "n", "stream", "prompt", "\u202e", "a" * 300, "max_tokens"])] = (
                copy.deepcopy(inner[at[-1]])
            )
        elif what == 2:
            inner[at[-1]] = [copy.deepcopy(inner[at[-1]]) for _ in range(rng.choice([0, 1, 2, 40]))]
        else:
            inner[at[-1]] = copy.deepcopy(rng.choice(ATOMS))
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    kind = rng.random()
    if kind < 0.15:
        at = rng.randrange(len(text))
        text = (
            text[:at]
            + rng.choice([b"", b"\xff", b'"', b"{", b"[" * 100, b",", b"\\u", b"1e999", b"\0"])
            + text[at + 1 :]
        )
    elif kind < 0.2:
        text = text[: rng.randrange(len(text) + 1)]
    elif kind < 0.22:
        depth = rng.choice([60, 70, 10_000])
        text = b"[" * depth + b"]" * depth
    return path, text


def mutated_stream(rng):
    data = bytearray(rng.choice(RAW))
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(5)
        if what == 0:
            data[at:at] = rng.choice(PIECES)
        elif what == 1:
            del data[at : at + rng.randrange(1, 20)]
        elif what == 2 and at < len(data):
            data[at] = rng.randrange(256)
        elif what == 3:
            data[at : at + 2] = rng.choice(PIECES)
        else:
            data += rng.choice(RAW)
    return bytes(data)


async def read_answer(reader):
    """Status and body of one answer; None when the server closed instead."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if fields.get(b"Transfer-Encoding") == b"chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(fields.get(b"Content-Length", b"0")))
    return status, fields, body


def check_answer(status, body, sent):
    assert 200 <= status < 500 or status == 501, (status, body[:500], sent[:2000])
    if status >= 400:
        error = json.loads(body)["error"]
        if isinstance(error, str):  # Ollama's form
            assert "[" in error, (body, sent[:2000])
            return
        assert error["message"] and error["type"], (body, sent[:2000])
        # Anthropic's form has no param.
        assert error.get("param") or "[" in error["message"], (body, sent[:2000])


async def fuzz_bodies(server, n):
    counts = {}

    async def work(first):
        reader = writer = None
        for i in range(first, n, WORKERS):
            path, body = mutated_body(random.Random(f"{SEED} body {i}"))
            if writer is None or writer.is_closing():
                reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(
                b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (path.encode(), len(body), body)
            )
            async with asyncio.timeout(120):
                status, fields, answer = await read_answer(reader)
            check_answer(status, answer, body)
            counts[status] = counts.get(status, 0) + 1
            if fields.get(b"Connection") == b"close":
                writer.close()
        if writer is not None:
            writer.close()

    await asyncio.gather(*(work(i) for i in range(WORKERS)))
    return counts


async def fuzz_streams(server, n):
    counts = {}

    async def work(first):
        for i in range(first, n, WORKERS):
            data = mutated_stream(random.Random(f"{SEED} stream {i}"))
            reader, writer = await asyncio.open_connection(server.host, server.port)
            out = b""
            try:
                writer.write(data)
                writer.write_eof()
                async with asyncio.timeout(60):
                    out = await reader.read(-1)
            except ConnectionError:
                pass  # it had seen enough, and what was under way was lost with the connection
            finally:
                writer.close()
            if out:
                status = int(out.split(b" ", 2)[1])
                assert 100 <= status < 500 or status == 501, (out[:500], data)
                counts[status] = counts.get(status, 0) + 1

    await asyncio.gather(*(work(i) for i in range(WORKERS)))
    return counts


@pytest.mark.slow
def test_mutated_messages_are_answered(tmp_path, capsys):
    # Loading of models and tenants are admin's paths; without keys everyone is one.
    model = tmp_path / "tiny.gguf"
    tiny.write(model, template="{% if tools %}{{ tools | tojson }}{% endif %}" + tiny.CHAT_TEMPLATE)
    with serving(model, "--max-slots", "16") as server:
        counts = {"bodies": asyncio.run(fuzz_bodies(server, N)), "streams": asyncio.run(fuzz_streams(server, N))}
        assert server.request("GET", "/health")[0] == 200
        assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[0] == 200
        server.wait(lambda: server.gauge("vllm:num_requests_running") == 0, 60)
        assert counts["bodies"][200] > N // 20, counts  # some are good as they are
        assert counts["bodies"][400] > N // 4, counts
        assert server.stop() == 0
    with capsys.disabled():
        print(counts)
