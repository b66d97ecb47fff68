"""A call that the model wrote, sent back as the client got it: its prompt is what the model wrote, so that the prefix
cache has it."""

import json

import pytest

import scripted_model
from server_process import serving

PATH = "/v1/chat/completions"
# As no one would write them anew: blanks, forms of numbers, the order of keys.
ODD = '{"z":"Bern",  "a":[ 0.10,1e5, 18446744073709551616 ], "why": "the city that was asked for, and no other one"}'
PLAIN = '{"z": "Bern", "a": [0.10, 1e5, 18446744073709551616], "why": "the city that was asked for, and no other"}'
SCRIPTS = {
    "odd": "Let me look that up.\n" + scripted_model.call("look", ODD),
    "plain": "I shall ask for it.\n" + scripted_model.call("look", PLAIN),
    "end": "It is known now, and that is all.",
}
CHOOSE = "'end' if messages[-1].role == 'tool' else messages[0].content"
# As Qwen3's template, and with the token that begins the script where the prompt had it.
TEXTS = "c.function.arguments if c.function.arguments is string else "
TEMPLATE = (
    "{% if tools %}<|im_start|>system\n# Tools <tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools>"
    "<|im_end|>\n{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>{{ '\\n' }}"
    "{% elif m.role == 'assistant' %}<|im_start|>assistant\n<|script:{{ messages[0].content }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}"
    """{{ '\\n<tool_call>\\n{"name": "' ~ c.function.name ~ '", "arguments": ' }}"""
    "{{ " + TEXTS + "c.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{% endfor %}<|im_end|>{{ '\\n' }}"
    "{% else %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>{{ '\\n' }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<|script:{{ CHOOSE }}|>{% endif %}"
)
FUNCTION = {"name": "look", "parameters": {"type": "object", "properties": {"z": {"type": "string"}}}}


@pytest.fixture(scope="module", params=["prints texts", "prints objects"])
def server(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("models") / "scripted.gguf"
    template = TEMPLATE if request.param == "prints texts" else TEMPLATE.replace(TEXTS, "")
    scripted_model.write(path, SCRIPTS, CHOOSE, template)
    with serving(path, "--id", "m") as server:
        server.prints_texts = request.param == "prints texts"
        yield server


def post(server, path, body):
    status, _, answer = server.request("POST", path, body)
    assert status == 200, answer
    return answer


def chat(server, script):
    """The bodies of a first and a second turn, the arguments that the client got, the tokens in the cache for both."""
    messages = [{"role": "user", "content": script}]
    tools = [{"type": "function", "function": FUNCTION}]

    def ask():
        usage = (answer := post(server, PATH, {"messages": messages, "tools": tools}))["usage"]
        return answer["choices"][0]["message"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    message, n, first = ask()
    call = message["tool_calls"][0]
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "r"}]
    return call["function"]["arguments"], n, first, ask()[2]


def responses(server, script):
    items = [{"role": "user", "content": script}]
    tools = [{"type": "function", **FUNCTION}]

    def ask():
        usage = (answer := post(server, "/v1/responses", {"input": items, "tools": tools}))["usage"]
        return answer["output"], usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]

    output, n, first = ask()
    call = output[-1]
    items += [*output, {"type": "function_call_output", "call_id": call["call_id"], "output": "r"}]
    return call["arguments"], n, first, ask()[2]


def messages(server, script):
    said = [{"role": "user", "content": script}]
    tools = [{"name": "look", "input_schema": FUNCTION["parameters"]}]

    def ask():
        # A client that keeps numbers: one that reads them into Python's floats and writes those loses their form.
        body = json.dumps({"max_tokens": 500, "messages": said, "tools": tools}).replace('"ARGUMENTS"', PLAIN)
        usage = (answer := post(server, "/v1/messages", body))["usage"]
        cached = usage["cache_read_input_tokens"]
        return answer["content"], usage["input_tokens"] + cached, cached

    content, n, first = ask()
    assert content[1]["input"] == json.loads(PLAIN)
    content[1]["input"] = "ARGUMENTS"
    result = {"type": "tool_result", "tool_use_id": content[1]["id"], "content": "r"}
    said += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    return PLAIN, n, first, ask()[2]


def as_written(server, script, arguments):
    """The tokens of the first prompt with the answer as the model wrote it, and of the second prompt."""
    tools = [{"type": "function", "function": FUNCTION}]
    messages = [{"role": "user", "content": script}]
    first = post(server, "/apply-template", {"messages": messages, "tools": tools})["prompt"] + SCRIPTS[script]
    call = {"type": "function", "id": "c", "function": {"name": "look", "arguments": arguments}}
    said = {"role": "assistant", "content": SCRIPTS[script].partition("\n")[0], "tool_calls": [call]}
    messages += [said, {"role": "tool", "tool_call_id": "c", "content": "r"}]
    second = post(server, "/apply-template", {"messages": messages, "tools": tools})["prompt"]
    return first, second


@pytest.mark.parametrize("script", ["odd", "plain"])
@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_calls_are_found_again(server, ask, script):
    if ask is messages and script == "odd":
        pytest.skip("an object has no text of its own")
    post(server, "/v1/tenants/me/flush_prefix_cache", {})
    arguments, n, first, second = ask(server, script)
    assert arguments == (ODD if script == "odd" else PLAIN) and first == 0
    wrote, prompt = as_written(server, script, arguments)
    if script == "plain" or server.prints_texts:
        assert prompt.startswith(wrote)  # to the byte
        assert second > n  # tokens of the answer are in the cache, too
    else:  # the template writes the object in a way of its own: what comes before it is found
        assert not prompt.startswith(wrote)


def test_the_object_that_a_template_writes_keeps_its_keys_and_numbers(server):
    if server.prints_texts:
        pytest.skip("of templates that write objects")
    _, prompt = as_written(server, "odd", ODD)
    assert '"arguments": {"z": "Bern", "a": [0.10, 1e5, 18446744073709551616], "why": ' in prompt
