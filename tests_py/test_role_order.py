"""Messages in orders that a template refuses, through the APIs: agents send later system messages, and two messages of
one role in a row."""

import pytest

import scripted_model
from server_process import serving

# As Mistral's models have it: one system message, then user and assistant in turn; calls and results do not count.
TEMPLATE = (
    "{%- if tools %}# {% for t in tools %}{{ t.function.name }}{% endfor %}{% endif %}{% set ns = namespace(index=0) %}"
    "{%- for m in messages %}{% if m.role == 'system' %}"
    "{%- if not loop.first %}{{ raise_exception('a system message that is not the first') }}{% endif %}"
    "{%- elif m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{%- if (m.role == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{%- set ns.index = ns.index + 1 %}{% endif %}<{{ m.role }}>{{ m.content }}"
    "{%- for c in m.tool_calls or [] %}"
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{%- endfor %}{% endfor %}{% if add_generation_prompt %}<|script:{{ CHOOSE }}|>{% endif %}"
)
MIDDLE = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "system", "content": "Agents: none."},
    {"role": "user", "content": "Go on."},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "alternating.gguf"
    scripted_model.write(path, {"0": "Done.", "1": "Seen."}, template=TEMPLATE)
    with serving(path, "--id", "m") as server:
        yield server


def prompt(server, messages):
    status, _, answer = server.request("POST", "/apply-template", {"messages": messages})
    assert status == 200, answer
    return answer["prompt"]


def test_a_later_system_message_stands_at_its_place(server):
    assert prompt(server, MIDDLE).startswith("<user>Hi<assistant>Hello.<user>Agents: none.\n\nGo on.")
    # What stood there before a turn stands there after it, so that the prefix cache has it.
    longer = [*MIDDLE, {"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Be brief."}]
    assert prompt(server, longer).startswith(prompt(server, MIDDLE).removesuffix("<|script:0|>"))


def test_system_messages_at_the_beginning_become_one(server):
    systems = [{"role": "developer", "content": "A"}, {"role": "system", "content": [{"type": "text", "text": "B"}]}]
    assert prompt(server, [*systems, *MIDDLE[:1]]).startswith("<system>A\n\nB<user>Hi")


@pytest.mark.parametrize(
    ("path", "field", "fields"),
    [
        ("/v1/chat/completions", "messages", {}),
        ("/v1/messages", "messages", {"max_tokens": 8, "system": "A"}),
        ("/v1/responses", "input", {"instructions": "A"}),
        ("/api/chat", "messages", {"stream": False}),
    ],
)
def test_each_api_answers_them(server, path, field, fields):
    status, _, answer = server.request("POST", path, {"model": "m", field: MIDDLE, **fields})
    assert status == 200, answer
    assert "Done." in str(answer)


def test_a_user_may_speak_behind_a_result(server):
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    messages = [
        MIDDLE[0],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        MIDDLE[3],
    ]
    body = {"messages": messages, "tools": tools}
    status, _, answer = server.request("POST", "/v1/chat/completions", body)
    assert status == 200, answer
    assert answer["choices"][0]["message"]["content"] == "Seen."
    _, _, answer = server.request("POST", "/apply-template", body)
    assert "<tool>r<assistant>OK.<user>Go on." in answer["prompt"]
