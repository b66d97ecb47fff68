"""What a request may ask for besides sampling: templates, biases, scores of the prompt, salts, text."""

import json
import math
import re

import numpy as np
import pytest

import tiny_model as tiny
import zinc_rt
from zinc_rt import _signature

TEMPLATE = (
    "{% if tools %}TOOLS {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}<|start|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant: {% if not enable_thinking %}<none>{% endif %}{% endif %}"
)


# What describes the prompt; Session.generate has it before the fields.
NO_FIELDS = {"self", "prompt", "messages", "token_ids"}
ROW = re.compile(r"^  (?P<name>\w+) \((?P<default>.*?)\): .+$", re.MULTILINE)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tools.gguf"
    tiny.write(path, template=TEMPLATE)
    with zinc_rt.Engine(path, max_slots=4) as engine:
        yield engine


@pytest.fixture
def session(engine, request):
    return engine.tenant(request.node.name).session()


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows = rows - rows.max(axis=-1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))


def test_the_stub_has_each_field_with_its_default():
    """help(Session.generate) has the fields and defaults from the table of the engine."""
    rows = {row["name"]: row["default"] for row in ROW.finditer(zinc_rt.Session.generate.__doc__)}
    stub = _signature.stub().signature("Session", "generate").parameters
    assert set(stub) - NO_FIELDS == set(rows)
    empty = {"[]": "()", "{}": "()", "''": "None"}
    for name, default in rows.items():
        wanted = stub[name].default
        assert wanted is None or str(wanted) == empty.get(default, default), name


def test_messages_take_tools_and_variables(engine, session):
    messages = [{"role": "user", "content": "What time is it?"}]
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]

    def n_prompt(**arguments):
        return session.generate(messages=messages, max_tokens=1, **arguments).usage.prompt_tokens

    def n_text(**arguments):
        return len(engine.tokenize(engine.apply_template(messages, **arguments), add_special=False))

    assert n_prompt() == n_text()
    assert n_prompt(tools=tools) == n_text(tools=tools) > n_text()
    thinking = {"enable_thinking": True}
    assert n_prompt(chat_template_kwargs=thinking) == n_text(enable_thinking=True) < n_text()
    assert n_prompt(add_generation_prompt=False) == n_text(add_generation_prompt=False)
    messages.append({"role": "assistant", "content": "It is"})
    whole = engine.apply_template(messages, add_generation_prompt=False)
    assert n_prompt(continue_final_message=True) == len(engine.tokenize(whole.removesuffix("<|end|>"), False))


@pytest.mark.parametrize("max_tokens", [0, 1, 3])
def test_prompt_logprobs_are_those_of_the_logits(engine, session, max_tokens):
    ids = [(7 * i) % 300 for i in range(150)]
    session.generate(token_ids=ids, max_tokens=1)  # cached now
    got = session.generate(token_ids=ids, max_tokens=max_tokens, prompt_logprobs=5, ignore_eos=True)
    scores = got.prompt_logprobs
    rows = log_softmax(engine.logits(ids))
    assert [entry.token_id for entry in scores] == ids
    assert math.isnan(scores[0].logprob) and scores[0].top == []
    assert [entry.logprob for entry in scores[1:]] == pytest.approx(
        [rows[i, token] for i, token in enumerate(ids[1:])], abs=1e-6
    )
    for i, entry in enumerate(scores[1:]):
        assert [token for token, _ in entry.top] == list(np.argsort(-rows[i], kind="stable")[:5])
    assert len(got.token_ids) == max_tokens
    assert got.finish_reason == "length"


def test_bias_and_least_length(session):
    plain = session.generate(token_ids=[3, 4, 5], max_tokens=6, ignore_eos=True)
    forced = session.generate(token_ids=[3, 4, 5], max_tokens=6, logit_bias={33: 100})
    assert forced.token_ids == [33] * 6
    stop = plain.token_ids[0]
    run = {"token_ids": [3, 4, 5], "max_tokens": 6, "ignore_eos": True, "stop_token_ids": [stop]}
    assert session.generate(**run).token_ids == [stop]
    longer = session.generate(**run, min_tokens=4)
    assert len(longer.token_ids) >= 4 and stop not in longer.token_ids[:4]


def test_typical_p_decides(session):
    run = {"token_ids": [3, 4, 5], "max_tokens": 20, "ignore_eos": True, "temperature": 2.0, "seed": 4}
    plain = session.generate(**run)
    assert session.generate(**run, typical_p=1.0).token_ids == plain.token_ids
    little = session.generate(**run, typical_p=0.2)
    assert little.token_ids != plain.token_ids
    assert little.token_ids == session.generate(**run, typical_p=0.2).token_ids


def test_text_of_special_tokens_and_stop_strings(engine, session):
    start = engine.tokenize("<|start|>")[0]
    run = {"token_ids": [3, 4, 5], "max_tokens": 2, "logit_bias": {start: 100}}
    assert session.generate(**run).text == ""
    assert session.generate(**run, skip_special_tokens=False).text == "<|start|>" * 2
    run = {"token_ids": [3, 4, 5], "max_tokens": 5, "logit_bias": {engine.tokenize("a")[0]: 100}}
    assert session.generate(**run, stop="aa").text == ""
    assert session.generate(**run, stop="aa", include_stop_str_in_output=True).text == "aa"
    assert session.generate(**run, stop="aa", min_tokens=3).text == "aaa"


def test_salts_share_nothing(session):
    run = {"token_ids": list(range(40)), "max_tokens": 1}
    cached = [session.generate(**run, cache_salt=salt).usage.cached_tokens for salt in ("a", "b", "a", None)]
    assert cached == [0, 0, 39, 0]


def test_events_carry_their_logprob(session):
    stream = session.stream(token_ids=[3, 4, 5], max_tokens=3, logprobs=2, ignore_eos=True)
    events = [event.logprob for event in stream if event.token_id is not None]
    wanted = stream.completion.logprobs
    assert [(e.token_id, e.logprob, e.top) for e in events] == [(e.token_id, e.logprob, e.top) for e in wanted]
    assert [event.logprob for event in session.stream(token_ids=[3], max_tokens=1)] == [None]


def test_the_trace_has_the_request_id(engine, session, tmp_path):
    with engine.trace(tmp_path / "trace.json"):
        session.generate(token_ids=[1, 2], max_tokens=2, request_id="req-7", ignore_eos=True)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "req-7" in {event.get("args", {}).get("request_id") for event in events}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens is 9, 0 to 8"),
        ({"typical_p": -0.5}, "typical_p is -0.5, 0 to 1"),
        ({"logit_bias": {1: 101.0}}, "logit_bias is 101, -100 to 100"),
        ({"logit_bias": {1: float("nan")}}, "logit_bias is nan"),
        ({"logit_bias": {100000: 1.0}}, "logit_bias of token id 100000"),
        ({"prompt_logprobs": 21}, "prompt_logprobs is 21, 0 to 20"),
        ({"cache_salt": "x" * 257}, "cache_salt has 257 bytes, 0 to 256"),
        ({"request_id": "x" * 257}, "request_id has 257 bytes, 0 to 256"),
        ({"tools": []}, "tools is given without messages"),
        ({"continue_final_message": True}, "continue_final_message is given without messages"),
    ],
)
def test_refusals_name_field_value_and_range(session, arguments, message):
    with pytest.raises(zinc_rt.errors.InvalidArgument, match=message):
        session.generate(token_ids=[1], **arguments)
