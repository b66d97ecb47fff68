"""Each format of calls there and back through the APIs: what a model recites becomes a call, and the template writes
that call in the history as the model wrote it. The templates have the markers and the order of the models' own."""

import json
from typing import NamedTuple

import pytest

import scripted_model
from server_process import serving

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "deep": {"type": "boolean"}},
            },
        },
    }
    for name in ("get_weather", "get_rain")
]
WEATHER, RAIN = {"city": "Bern", "days": 5}, {"city": "Bonn", "deep": True}


class Format(NamedTuple):
    marks: tuple  # control tokens of the vocabulary
    tools: str  # how the template shows the tools, if there are some
    message: str  # how it writes a message `m`, after the end of a header's text
    recited: str  # a call of get_weather, as the model writes it
    both: str  # calls of get_weather and of get_rain in the history, with their results
    start: str = "<|assistant|>"  # what the prompt ends with


ROLE = "<|{{ m.role }}|>"
NAME, ARGUMENTS = "{{ c.function.name }}", "{{ c.function.arguments | tojson }}"
EACH = "{% for c in m.tool_calls or [] %}"
JSON_WEATHER, JSON_RAIN = json.dumps(WEATHER), json.dumps(RAIN)


def each_argument(text: str) -> str:
    return "{% for k, v in c.function.arguments.items() %}" + text + "{% endfor %}"


VALUE = "{{ v if v is string else v | tojson }}"
FORMATS = {
    "harmony": Format(
        ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"),
        "<|start|>developer<|message|>{{ tools | tojson }}<|end|>",
        "{% if m.tool_calls %}{% set c = m.tool_calls[0] %}<|start|>assistant<|channel|>commentary to=functions."
        f"{NAME} <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
        "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}",
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{JSON_WEATHER}<|call|>",
        # One call a message, each with its result.
        f"<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{JSON_WEATHER}"
        "<|call|><|start|>tool<|message|>sun<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.get_rain <|constrain|>json<|message|>{JSON_RAIN}"
        "<|call|><|start|>tool<|message|>rain<|end|>",
        "<|start|>assistant",
    ),
    "glm4": Format(
        (),
        "<|system|>\n{{ tools | tojson }}\n在调用上述函数时，请使用 Json 格式表示调用的参数。",
        "{% if m.role == 'assistant' and m.metadata %}<|assistant|>{{ m.metadata }}\n{{ m.content }}"
        "{% elif m.role in ['user', 'assistant', 'observation'] %}" + ROLE + "\n{{ m.content }}{% endif %}",
        f"get_weather\n{JSON_WEATHER}",
        f"<|assistant|>get_weather\n{JSON_WEATHER}<|observation|>\nsun"
        f"<|assistant|>get_rain\n{JSON_RAIN}<|observation|>\nrain",
    ),
    "glm45": Format(
        (),
        "<|system|>\n{{ tools | tojson }}",
        ROLE
        + "\n{{ m.content }}"
        + EACH
        + f"{{{{ '\n<tool_call>' }}}}{NAME}\n"
        + each_argument("<arg_key>{{ k }}</arg_key>\n<arg_value>" + VALUE + "</arg_value>\n")
        + "</tool_call>{% endfor %}",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>5</arg_value>\n</tool_call>",
        "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>5</arg_value>\n</tool_call>\n<tool_call>get_rain\n<arg_key>city</arg_key>\n<arg_value>Bonn"
        "</arg_value>\n<arg_key>deep</arg_key>\n<arg_value>true</arg_value>\n</tool_call><|tool|>\nsun<|tool|>\nrain",
    ),
    "glm47": Format(
        (),
        "<|system|>\n{{ tools | tojson }}",
        ROLE
        + "{{ m.content }}"
        + EACH
        + f"<tool_call>{NAME}"
        + each_argument("<arg_key>{{ k }}</arg_key><arg_value>" + VALUE + "</arg_value>")
        + "</tool_call>{% endfor %}",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key><arg_value>5"
        "</arg_value></tool_call>",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key><arg_value>5"
        "</arg_value></tool_call><tool_call>get_rain<arg_key>city</arg_key><arg_value>Bonn</arg_value><arg_key>deep"
        "</arg_key><arg_value>true</arg_value></tool_call><|tool|>sun<|tool|>rain",
    ),
    "tags": Format(  # Nemotron 3 Nano
        (),
        "<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n",
        ROLE
        + "{{ m.content }}"
        + EACH
        + f"<tool_call>\n<function={NAME}>\n"
        + each_argument("<parameter={{ k }}>\n" + VALUE + "\n</parameter>\n")
        + "</function>\n</tool_call>\n{% endfor %}",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n5\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n5\n</parameter>\n"
        "</function>\n</tool_call>\n<tool_call>\n<function=get_rain>\n<parameter=city>\nBonn\n</parameter>\n"
        "<parameter=deep>\ntrue\n</parameter>\n</function>\n</tool_call>\n<|tool|>sun<|tool|>rain",
    ),
    "nemotron": Format(  # Nemotron Nano 9B v2
        (),
        "<SPECIAL_10>System\n<AVAILABLE_TOOLS>{{ tools | tojson }}</AVAILABLE_TOOLS>\n",
        ROLE + "{{ m.content }}{% if m.tool_calls %}<TOOLCALL>[" + EACH + "{{ ', ' if not loop.first }}"
        f'{{{{ \'{{"name": "\' ~ c.function.name ~ \'", "arguments": \' }}}}{ARGUMENTS}'
        "{{ '}' }}{% endfor %}]</TOOLCALL>{% endif %}",
        f'<TOOLCALL>[{{"name": "get_weather", "arguments": {JSON_WEATHER}}}]</TOOLCALL>',
        f'<TOOLCALL>[{{"name": "get_weather", "arguments": {JSON_WEATHER}}}, '
        f'{{"name": "get_rain", "arguments": {JSON_RAIN}}}]</TOOLCALL><|tool|>sun<|tool|>rain',
    ),
    "hunyuan": Format(  # Hunyuan A13B
        (),
        "<|startoftext|>{{ tools | tojson }}<|extra_4|>",
        ROLE + "{{ m.content }}{% if m.tool_calls %}<tool_calls>[" + EACH + "{{ ', ' if not loop.first }}"
        f'{{{{ \'{{"name": "\' ~ c.function.name ~ \'", "arguments": \' }}}}{ARGUMENTS}'
        "{{ '}' }}{% endfor %}]</tool_calls>{% endif %}",
        f'<tool_calls>[{{"name": "get_weather", "arguments": {JSON_WEATHER}}}]</tool_calls>',
        f'<tool_calls>[{{"name": "get_weather", "arguments": {JSON_WEATHER}}}, '
        f'{{"name": "get_rain", "arguments": {JSON_RAIN}}}]</tool_calls><|tool|>sun<|tool|>rain',
    ),
    # A template that knows no calls.
    "lfm2": Format(
        ("<|tool_call_start|>", "<|tool_call_end|>"),
        "<|im_start|>system\nList of tools: <|tool_list_start|>{{ tools | tojson }}<|tool_list_end|><|im_end|>\n",
        "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n",
        '<|tool_call_start|>[get_weather(city="Bern", days=5)]<|tool_call_end|>',
        '<|tool_call_start|>[get_weather(city="Bern", days=5), get_rain(city="Bonn", deep=True)]<|tool_call_end|>'
        "<|im_end|>\n<|im_start|>tool\nsun<|im_end|>\n<|im_start|>tool\nrain<|im_end|>\n",
        "<|im_start|>assistant\n",
    ),
    "mistral_args": Format(
        ("[TOOL_CALLS]", "[ARGS]"),
        "[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]",
        ROLE + "{{ m.content }}" + EACH + f"[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}{{% endfor %}}",
        f"[TOOL_CALLS]get_weather[ARGS]{JSON_WEATHER}",
        f"[TOOL_CALLS]get_weather[ARGS]{JSON_WEATHER}[TOOL_CALLS]get_rain[ARGS]{JSON_RAIN}<|tool|>sun<|tool|>rain",
    ),
    "hermes": Format(  # Granite 4
        (),
        "<|start_of_role|>system<|end_of_role|>{{ tools | tojson }}<|end_of_text|>\n",
        ROLE
        + "{{ m.content }}"
        + EACH
        + f'{{{{ \'\n<tool_call>\n{{"name": "\' ~ c.function.name ~ \'", "arguments": \' }}}}{ARGUMENTS}'
        + "{{ '}' }}\n</tool_call>{% endfor %}",
        f'<tool_call>\n{{"name": "get_weather", "arguments": {JSON_WEATHER}}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {JSON_WEATHER}}}\n</tool_call>\n'
        f'<tool_call>\n{{"name": "get_rain", "arguments": {JSON_RAIN}}}\n</tool_call><|tool|>sun<|tool|>rain',
    ),
}
ASK = [{"role": "user", "content": "Weather?"}]


@pytest.fixture(scope="module", params=FORMATS)
def model(tmp_path_factory, request):
    """A server of a model that recites a call, then an answer; and the format."""
    form = FORMATS[request.param]
    template = (
        "{% if tools %}"
        + form.tools
        + "{% endif %}{% for m in messages %}"
        + form.message
        + "{% endfor %}{% if add_generation_prompt %}"
        + form.start
        + "<|script:{{ CHOOSE }}|>{% endif %}"
    )
    path = tmp_path_factory.mktemp("models") / "recites.gguf"
    choose = "messages | selectattr('role', 'in', ['tool', 'observation']) | list | length"
    scripted_model.write(path, {"0": form.recited, "1": "It rains."}, choose, template=template, marks=form.marks)
    with serving(path, "--id", "m") as server:
        assert server.request("GET", "/v1/models/m")[2]["tool_format"] == request.param
        yield server, form


def ask(server, messages, path="/v1/chat/completions", **fields):
    status, _, answer = server.request("POST", path, {"messages": messages, "tools": TOOLS, **fields})
    assert status == 200, answer
    return answer


def call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_what_the_model_writes_is_a_call_whole_and_streamed(model):
    server, _ = model
    choice = ask(server, ASK, seed=1)["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and not choice["message"]["content"]
    (made,) = choice["message"]["tool_calls"]
    assert made["function"]["name"] == "get_weather" and json.loads(made["function"]["arguments"]) == WEATHER
    lines = ask(server, ASK, seed=1, stream=True).decode().split("\n\n")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    parts = [c for chunk in chunks for choice in chunk["choices"] for c in choice["delta"].get("tool_calls") or []]
    assert "".join(part["function"].get("arguments") or "" for part in parts) == made["function"]["arguments"]
    assert [part["id"] for part in parts if part.get("id")] == [made["id"]]


def test_the_call_in_the_history_is_written_as_the_model_wrote_it(model):
    server, form = model
    made = ask(server, ASK)["choices"][0]["message"]["tool_calls"]
    history = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": made[0]["id"], "content": "sun"},
    ]
    assert form.recited in ask(server, history, "/apply-template")["prompt"]
    assert ask(server, history)["choices"][0]["message"]["content"] == "It rains."


def test_parallel_calls_in_the_history_are_all_written(model):
    server, form = model
    calls = [call("call_a", "get_weather", WEATHER), call("call_b", "get_rain", RAIN)]
    history = [
        *ASK,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_a", "content": "sun"},
        {"role": "tool", "tool_call_id": "call_b", "content": "rain"},
    ]
    assert form.both in ask(server, history, "/apply-template")["prompt"]


def test_calls_are_forced(model):
    server, _ = model
    for choice, names in (
        ("required", {"get_weather", "get_rain"}),
        ({"type": "function", "function": {"name": "get_rain"}}, {"get_rain"}),
    ):
        made = ask(server, ASK, tool_choice=choice, max_tokens=400, parallel_tool_calls=False)["choices"][0]
        assert {c["function"]["name"] for c in made["message"]["tool_calls"]} <= names
        assert made["message"]["tool_calls"] and not made["message"]["content"]
