"""Calls of tools through /v1/chat/completions: what clients get, whole and streamed, of a model that recites."""

import concurrent.futures
import json

import pytest

import scripted_model
from server_process import serving

CODE = 'if a < b:\n    print("</tool_call>", \'{"x": [1]}\')\n\n'
SCRIPTS = {
    "look": "<think>\nI need the weather.\n</think>\n\nLet me look.\n"
    + scripted_model.call("get_weather", '{"city": "Bern", "days": 3}')
    + "\n"
    + scripted_model.call("run", json.dumps({"code": CODE})),
    "nothing": scripted_model.call("now", "{}"),
    "unknown": "Up I go. " + scripted_model.call("fly_away", '{"to": "the moon"}') + " That was it.",
    "broken": "Here: <tool_call>this is no JSON</tool_call> as you see",
    "plain": "There is nothing that has to be called.",
    "answer": "It is sunny in the city, and the code ran.",
}
# The last user message is the script's name; behind a tool's result comes the answer.
CHOOSE = "'answer' if messages[-1].role == 'tool' else messages[-1].content"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in [
        ("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}),
        ("run", {"code": {"type": "string"}}),
        ("now", {}),
    ]
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "scripted.gguf"
    scripted_model.write(path, SCRIPTS, CHOOSE)
    with serving(path, "--id", "m") as server:
        yield server


def ask(server, script, **fields):
    body = {"messages": [{"role": "user", "content": script}], "tools": TOOLS, "seed": 7, **fields}
    status, _, answer = server.request("POST", "/v1/chat/completions", body)
    assert status == 200, answer
    return answer


def streamed(server, script, **fields):
    """The choices of a stream, put together as clients do it."""
    text = ask(server, script, stream=True, stream_options={"include_usage": True}, **fields)
    choices, usage = {}, None
    for event in text.decode().split("\n\n"):
        if not event.startswith("data: {"):
            continue
        chunk = json.loads(event[6:])
        usage = chunk["usage"] or usage
        for choice in chunk["choices"]:
            message, finish = choices.setdefault(choice["index"], [{"content": "", "reasoning_content": ""}, None])
            delta = choice["delta"]
            for name in ("content", "reasoning_content"):
                message[name] += delta.get(name) or ""
            for call in delta.get("tool_calls", []):
                calls = message.setdefault("tool_calls", [])
                if "id" in call:  # the first one of a call: id, type and the whole name, no arguments
                    assert call["index"] == len(calls)
                    assert call["function"]["arguments"] == ""
                    calls.append({"id": call["id"], "type": call["type"], "function": dict(call["function"])})
                else:
                    assert call.keys() == {"index", "function"}
                    assert call["function"].keys() == {"arguments"}
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
            choices[choice["index"]][1] = choice["finish_reason"] or finish
    return choices, usage


def calls_of(message):
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls", [])]


def test_calls_come_beside_the_text_and_the_reasoning(server):
    answer = ask(server, "look")
    choice = answer["choices"][0]
    message = choice["message"]
    assert choice["finish_reason"] == "tool_calls"
    assert message["content"] == "Let me look."
    assert message["reasoning_content"].strip() == "I need the weather."
    assert calls_of(message) == [("get_weather", {"city": "Bern", "days": 3}), ("run", {"code": CODE})]
    assert len({c["id"] for c in message["tool_calls"]}) == 2
    assert all(c["id"].startswith("call_") and len(c["id"]) == 29 for c in message["tool_calls"])
    assert 0 < answer["usage"]["completion_tokens_details"]["reasoning_tokens"] < 20


@pytest.mark.parametrize("script", SCRIPTS)
def test_streamed_is_whole(server, script):
    whole = ask(server, script)
    choices, usage = streamed(server, script)
    message, finish = choices[0]
    wanted = whole["choices"][0]
    assert finish == wanted["finish_reason"]
    assert message["content"] == (wanted["message"]["content"] or "")
    assert message["reasoning_content"] == wanted["message"].get("reasoning_content", "")
    assert message.get("tool_calls", []) == wanted["message"].get("tool_calls", [])  # ids, too
    assert usage["completion_tokens"] == whole["usage"]["completion_tokens"]


def test_alone_is_as_beside_others(server):
    def answer(script):
        message = ask(server, script)["choices"][0]["message"]
        return json.dumps(message)

    alone = {script: answer(script) for script in SCRIPTS}
    with concurrent.futures.ThreadPoolExecutor(17) as pool:
        scripts = [*SCRIPTS] * 6
        assert list(pool.map(answer, scripts)) == [alone[script] for script in scripts]


def test_a_call_without_parameters_has_an_empty_object(server):
    choice = ask(server, "nothing")["choices"][0]
    assert choice["message"]["content"] is None
    assert calls_of(choice["message"]) == [("now", {})]


def test_a_call_of_no_tool_is_passed_on_and_text_around_it_stays(server):
    message = ask(server, "unknown")["choices"][0]["message"]
    assert calls_of(message) == [("fly_away", {"to": "the moon"})]
    assert message["content"] == "Up I go. That was it."


def test_what_is_no_call_is_text(server):
    choice = ask(server, "broken")["choices"][0]
    assert choice["message"]["content"] == SCRIPTS["broken"]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("fields", [{"tools": []}, {"tool_choice": "none"}])
def test_without_tools_all_is_text(server, fields):
    choice = ask(server, "unknown", **fields)["choices"][0]
    assert choice["message"]["content"] == SCRIPTS["unknown"]
    assert choice["finish_reason"] == "stop"


def test_one_call_at_most(server):
    message = ask(server, "look", parallel_tool_calls=False)["choices"][0]["message"]
    assert calls_of(message) == [("get_weather", {"city": "Bern", "days": 3})]


def test_a_call_that_is_cut_off_ends_by_length(server):
    whole = ask(server, "nothing")["usage"]["completion_tokens"]
    lengths = {ask(server, "nothing", max_tokens=n)["choices"][0]["finish_reason"] for n in range(1, whole - 4)}
    assert lengths == {"length"}
    choice = ask(server, "look", max_tokens=30)["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_stop_strings_are_looked_for_in_text_and_not_in_calls(server):
    message = ask(server, "look", stop=["city"])["choices"][0]["message"]
    assert len(message["tool_calls"]) == 2
    choice = ask(server, "unknown", stop=["That was"])["choices"][0]
    assert choice["message"]["content"] == "Up I go. "
    assert calls_of(choice["message"]) == [("fly_away", {"to": "the moon"})]


def test_several_choices(server):
    choices, _ = streamed(server, "look", n=3)
    assert len(choices) == 3
    assert all(calls_of(message) == calls_of(choices[0][0]) for message, _ in choices.values())
    assert len({c["id"] for message, _ in choices.values() for c in message["tool_calls"]}) == 6


@pytest.mark.parametrize("arguments", ['{"city": "Bern"}', {"city": "Bern"}, "no JSON {", "", None])
def test_history_takes_calls_as_clients_send_them(server, arguments):
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    if arguments is None:
        del call["function"]["arguments"]
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "sunny"}]},
    ]
    choice = ask(server, "", messages=messages)["choices"][0]
    assert choice["message"]["content"] == SCRIPTS["answer"]
    assert choice["finish_reason"] == "stop"


def test_the_model_shows_its_formats(server):
    (model,) = server.request("GET", "/v1/models")[2]["data"]
    assert (model["tool_format"], model["reasoning_format"]) == ("hermes", "think")


def test_tools_for_a_model_whose_template_shows_none(tmp_path):
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<|script:CHOOSE|>{% endif %}"
    ).replace("CHOOSE", "{{ CHOOSE }}")
    choose = "'answer' if '<tool_response>' in messages[-1].content else messages[-1].content"
    scripted_model.write(tmp_path / "m.gguf", SCRIPTS, choose, template)
    body = {"messages": [{"role": "user", "content": "look"}], "tools": TOOLS}
    with serving(tmp_path / "m.gguf") as server:
        status, _, answer = server.request("POST", "/v1/chat/completions", body)
        assert status == 400
        assert "tools" in answer["error"]["message"]
    with serving(tmp_path / "m.gguf", "--tools", "hermes") as server:
        message = ask(server, "look")["choices"][0]["message"]
        assert len(message["tool_calls"]) == 2
        results = [{"role": "tool", "tool_call_id": c["id"], "content": "21"} for c in message["tool_calls"]]
        messages = [*body["messages"], message, *results]
        assert ask(server, "", messages=messages)["choices"][0]["message"]["content"] == SCRIPTS["answer"]
        prompt = server.request("POST", "/apply-template", {"messages": messages, "tools": TOOLS})[2]["prompt"]
        assert '"name":"get_weather"' in prompt
        assert prompt.count("<tool_response>\n21\n</tool_response>") == 2
