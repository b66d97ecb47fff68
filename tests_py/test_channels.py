"""Answers in messages with headers (gpt-oss's channels) through the APIs, of a model that recites."""

import json

import pytest

import scripted_model
from server_process import serving

MARKS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>")
# As the model's own template writes messages; the prompt ends within a header.
TEMPLATE = (
    "<|start|>system<|message|>Reasoning: {{ reasoning_effort or 'medium' }}<|end|>"
    "{%- if tools %}<|start|>developer<|message|>{% for t in tools %}type {{ t.function.name }} = any;{% endfor %}"
    "<|end|>{% endif %}{% for m in messages %}"
    "{%- if m.role == 'assistant' and m.tool_calls %}"
    "{%- if m.content and m.thinking %}{{ raise_exception('both content and thinking') }}{% endif %}"
    "{%- if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}"
    "{%- set c = m.tool_calls[0].function %}"
    "<|start|>assistant to=functions.{{ c.name }}<|channel|>commentary json<|message|>"
    "{{ c.arguments if c.arguments is string else c.arguments | tojson }}<|call|>"
    "{%- else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
    "{%- if add_generation_prompt %}<|start|>assistant<|script:{{ CHOOSE }}|>{% endif %}"
)
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Bern"}<|call|>'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "channels.gguf"
    scripted_model.write(path, {"0": CALL, "1": "It rains."}, template=TEMPLATE, marks=MARKS)
    with serving(path, "--id", "m") as server:
        yield server


def chat(server, messages, **fields):
    status, _, answer = server.request("POST", "/v1/chat/completions", {"messages": messages, **fields})
    assert status == 200, answer
    return answer


ASK = [{"role": "user", "content": "Weather?"}]


def test_a_message_to_a_function_is_a_call(server):
    choice = chat(server, ASK, tools=TOOLS)["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("get_weather", {"city": "Bern"})
    assert choice["finish_reason"] == "tool_calls" and not choice["message"]["content"]


def test_an_earlier_call_and_its_reasoning_are_written_as_the_template_does(server):
    call = chat(server, ASK, tools=TOOLS)["choices"][0]["message"]["tool_calls"]
    history = [
        *ASK,
        {"role": "assistant", "content": None, "reasoning_content": "Look it up.", "tool_calls": call},
        {"role": "tool", "tool_call_id": call[0]["id"], "content": "rain"},
    ]
    # A message without a header: the recited text is the answer.
    assert chat(server, history, tools=TOOLS)["choices"][0]["message"]["content"] == "It rains."
    status, _, answer = server.request("POST", "/apply-template", {"messages": history, "tools": TOOLS})
    assert status == 200, answer
    written = "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant to=functions.get_weather"
    assert written in answer["prompt"]


def test_a_forced_call_is_a_message_to_a_function(server):
    choice = chat(server, ASK, tools=TOOLS, tool_choice="required", max_tokens=60)["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_a_format_needs_no_header(server):
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1, 2]}}}
    choice = chat(server, ASK, response_format=wanted, max_tokens=20)["choices"][0]
    assert json.loads(choice["message"]["content"]) in (1, 2)
