"""Marks that a model writes around its answer, as ERNIE 4.5 Thinking does, through the APIs of a model that recites."""

import json

import pytest

import scripted_model
from server_process import serving

# The template writes the marks around earlier answers.
TEMPLATE = (
    "{% if tools %}<|im_start|>system\n# Tools {{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% if m.content %}{{ '<response>\n' ~ m.content ~ '\n</response>\n' }}{% endif %}"
    "{% for c in m.tool_calls or [] %}"
    """{{ '\n<tool_call>\n{"name": "' ~ c.function.name ~ '", "arguments": ' ~ c.function.arguments | tojson }}"""
    "{{ '}\n</tool_call>\n' }}{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<|script:{{ CHOOSE }}|>{% endif %}"
)
SCRIPTS = {
    "answer": "<think>\nLet me see.\n</think>\n\n\n<response>\nIt rains.\n\nTake <b>care</b>.\n</response>\n",
    "call": "<think>\nI ask.\n</think>\n\n" + scripted_model.call("look", '{"city": "Bern"}') + "\n",
}
ANSWER = "It rains.\n\nTake <b>care</b>."
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module", params=["marks are text", "marks are tokens"])
def server(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("models") / "marked.gguf"
    marks = ("<response>", "</response>") if request.param == "marks are tokens" else ()
    scripted_model.write(path, SCRIPTS, "messages[0].content", template=TEMPLATE, marks=marks)
    with serving(path, "--id", "m") as server:
        yield server


def ask(server, script, **fields):
    messages = [{"role": "user", "content": script}]
    status, _, answer = server.request("POST", "/v1/chat/completions", {"messages": messages, **fields})
    assert status == 200, answer
    return answer


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["without tools", "with tools"])
def test_the_content_has_no_marks_whole_and_streamed(server, fields):
    message = ask(server, "answer", **fields)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"].strip()) == (ANSWER, "Let me see.")
    lines = ask(server, "answer", stream=True, **fields).decode().split("\n\n")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    parts = [c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"]]
    assert "".join(parts) == ANSWER


def test_a_call_stands_without_marks(server):
    choice = ask(server, "call", tools=TOOLS)["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and not choice["message"]["content"]
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"city": "Bern"}


def test_an_answer_sent_back_has_the_marks_once(server):
    message = ask(server, "answer")["choices"][0]["message"]
    messages = [{"role": "user", "content": "answer"}, message, {"role": "user", "content": "and?"}]
    status, _, answer = server.request("POST", "/apply-template", {"messages": messages})
    assert status == 200, answer
    assert f"assistant\n<response>\n{ANSWER}\n</response>\n<|im_end|>" in answer["prompt"]
    assert answer["prompt"].count("<response>") == 1
