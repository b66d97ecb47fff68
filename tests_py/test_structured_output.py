"""Answers that are bound to a schema, an expression, choices or a grammar, and calls that are forced."""

import concurrent.futures
import json
import re
import subprocess

import pytest

import tiny_model
import zinc_rt
from server_process import PROGRAM, serving

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "maximum": 14}},
                "required": ["city", "days"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
ASK = [{"role": "user", "content": "Tell me of a person named Anna who is 30, and of the weather in Bern."}]


@pytest.fixture(scope="module")
def server(demo_model):
    with serving(demo_model, "--id", "m", "--tools", "hermes", "--max-context", "2048") as server:
        yield server


def ask(server, path="/v1/chat/completions", wanted=200, **fields):
    body = {"messages": ASK, "max_tokens": 200, "temperature": 0, **fields}
    status, _, answer = server.request("POST", path, body)
    assert status == wanted, answer
    return answer


def check(text):
    value = json.loads(text)
    assert list(value) == ["name", "age", "tags"]
    assert isinstance(value["name"], str)
    assert 0 <= value["age"] <= 120
    assert 1 <= len(value["tags"]) <= 3
    assert set(value["tags"]) <= {"a", "b", "c"}


JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": JSON_SCHEMA},
        {"structured_outputs": {"json": SCHEMA}},
        {"guided_json": json.dumps(SCHEMA)},
        {"json_schema": SCHEMA, "temperature": 1.5, "seed": 3},
    ],
)
def test_a_schema(server, fields):
    choice = ask(server, **fields)["choices"][0]
    assert choice["finish_reason"] == "stop"
    check(choice["message"]["content"])


def test_a_schema_binds_whatever_is_drawn(server):
    for seed in range(8):
        answer = ask(server, response_format=JSON_SCHEMA, temperature=2, seed=seed)
        check(answer["choices"][0]["message"]["content"])


def test_other_formats(server):
    def text(**fields):
        return ask(server, max_tokens=60, **fields)["choices"][0]["message"]["content"]

    assert text(guided_choice=["yes", "no", "maybe so"]) in ("yes", "no", "maybe so")
    assert re.fullmatch(r"[0-9]{3}-[a-f]{2,4}", text(regex="[0-9]{3}-[a-f]{2,4}"))
    assert text(grammar='root ::= "Hi " ("Anna" | "Bob") "!"') in ("Hi Anna!", "Hi Bob!")
    assert ask(server, response_format={"type": "text"})["choices"][0]["message"]["content"]
    completion = ask(server, "/v1/completions", messages=None, prompt="It is ", regex="[0-9]{4}")
    assert re.fullmatch("[0-9]{4}", completion["choices"][0]["text"])


PERSON_TAG = {
    "type": "tag",
    "begin": "<person>",
    "content": {"type": "json_schema", "json_schema": SCHEMA},
    "end": "</person>",
}
# Words that the model is sure to write.
WORDS_TAG = {
    "type": "structural_tag",
    "structures": [
        {"begin": " a", "schema": {"enum": ["X"]}, "end": "!"},
        {"begin": " the", "schema": {"enum": [1, 2]}, "end": "!"},
    ],
    "triggers": [" a", " the"],
}


def test_structural_tags(server):
    tag = {"type": "structural_tag", "format": PERSON_TAG}
    for fields in (
        {"response_format": tag},
        {"structured_outputs": {"structural_tag": tag}},
        {"structured_outputs": {"structural_tag": json.dumps(tag)}},
    ):
        choice = ask(server, **fields)["choices"][0]
        assert choice["finish_reason"] == "stop"
        check(re.fullmatch("<person>(.*)</person>", choice["message"]["content"], re.S)[1])
    text = ask(server, response_format=WORDS_TAG, max_tokens=120)["choices"][0]["message"]["content"]
    found = re.findall(r' (?:a|the)(?:"X"!|[12]!)', text)
    assert found and len(found) >= len(re.findall(r" (?:a|the)", text)) - 1  # the last one may be cut
    assert len(text) > 3 * len("".join(found))  # the rest is free


def test_any_object(server):
    text = ask(server, response_format={"type": "json_object"}, max_tokens=400)["choices"][0]
    assert text["message"]["content"].startswith("{")
    if text["finish_reason"] == "stop":
        assert isinstance(json.loads(text["message"]["content"]), dict)


def test_the_other_apis(server):
    body = {"model": "m", "max_tokens": 200, "messages": ASK, "temperature": 0}
    config = {"format": {"type": "json_schema", "schema": SCHEMA}}
    status, _, answer = server.request("POST", "/v1/messages", {**body, "output_config": config})
    assert status == 200, answer
    check(answer["content"][0]["text"])
    text = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA}}
    status, _, answer = server.request("POST", "/v1/responses", {"input": ASK, "text": text, "temperature": 0})
    assert status == 200, answer
    check(answer["output"][0]["content"][0]["text"])
    options = {"temperature": 0, "num_predict": 200}
    body = {"model": "m", "messages": ASK, "format": SCHEMA, "stream": False, "options": options}
    status, _, answer = server.request("POST", "/api/chat", body)
    assert status == 200, answer
    check(answer["message"]["content"])


def test_streamed_alone_and_beside_others_are_one_text(server):
    def text(seed, **fields):
        answer = ask(server, response_format=JSON_SCHEMA, temperature=1, seed=seed, **fields)
        return answer["choices"][0]["message"]["content"]

    alone = [text(seed) for seed in range(4)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(text, [*range(4)] * 4)) == alone * 4
    stream = ask(server, response_format=JSON_SCHEMA, temperature=1, seed=0, stream=True).decode()
    chunks = [json.loads(e[6:]) for e in stream.split("\n\n") if e.startswith("data: {")]
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == alone[0]


def calls(choice):
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in choice["message"]["tool_calls"]]


def test_a_call_is_forced(server):
    choice = ask(server, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    ((name, arguments),) = calls(choice)
    assert name in ("get_weather", "now")
    assert not choice["message"]["content"]
    named = {"type": "function", "function": {"name": "get_weather"}}
    choice = ask(server, tools=TOOLS, tool_choice=named)["choices"][0]
    assert choice["finish_reason"] == "stop"  # as in OpenAI's API
    ((name, arguments),) = calls(choice)
    assert name == "get_weather"
    assert list(arguments) == ["city", "days"]
    assert arguments["days"] <= 14


def test_calls_are_forced_in_the_other_apis(server):
    tool = {"name": "get_weather", "input_schema": TOOLS[0]["function"]["parameters"]}
    choice = {"type": "tool", "name": "get_weather"}
    body = {"max_tokens": 200, "messages": ASK, "tools": [tool], "tool_choice": choice, "temperature": 0}
    status, _, answer = server.request("POST", "/v1/messages", body)
    assert status == 200, answer
    assert answer["stop_reason"] == "tool_use"
    assert list(answer["content"][0]["input"]) == ["city", "days"]
    flat = {"type": "function", **TOOLS[0]["function"]}
    choice = {"type": "function", "name": "get_weather"}
    body = {"input": ASK, "tools": [flat], "tool_choice": choice, "temperature": 0, "max_output_tokens": 200}
    status, _, answer = server.request("POST", "/v1/responses", body)
    assert status == 200, answer
    assert answer["output"][0]["type"] == "function_call"
    assert list(json.loads(answer["output"][0]["arguments"])) == ["city", "days"]


# How a template of each format writes a call, and which special tokens are in it.
NAME, ARGUMENTS = "{{ c.function.name }}", "{% for k, v in c.function.arguments.items() %}"
OTHER_FORMATS = {
    "seed": (
        f"<seed:tool_call>\n<function={NAME}>\n{ARGUMENTS}<parameter={{{{ k }}}}>{{{{ v }}}}</parameter>\n"
        "{% endfor %}</function>\n</seed:tool_call>",
        ["<seed:tool_call>", "</seed:tool_call>"],
    ),
    "tags": (
        f"<tool_call>\n<function={NAME}>\n{ARGUMENTS}<parameter={{{{ k }}}}>\n{{{{ v }}}}\n</parameter>\n"
        "{% endfor %}</function>\n</tool_call>",
        ["<tool_call>", "</tool_call>"],
    ),
    "cohere": (
        f'<|START_ACTION|>[\n    {{% raw %}}{{{{% endraw %}}"tool_call_id": "0", "tool_name": "{NAME}", "parameters": '
        "{{ c.function.arguments | tojson }}{% raw %}}{% endraw %}\n]<|END_ACTION|>",
        ["<|START_ACTION|>", "<|END_ACTION|>"],
    ),
    "lfm2": (
        f"<|tool_call_start|>[{NAME}({ARGUMENTS}{{{{ k }}}}={{{{ v | tojson }}}}{{% endfor %}})]<|tool_call_end|>",
        ["<|tool_call_start|>", "<|tool_call_end|>"],
    ),
    "glm47": (
        f"<tool_call>{NAME}{ARGUMENTS}<arg_key>{{{{ k }}}}</arg_key><arg_value>{{{{ v }}}}</arg_value>{{% endfor %}}"
        "</tool_call>",
        ["<tool_call>", "</tool_call>"],
    ),
    "nemotron": (
        f'<TOOLCALL>[{{{{ \'{{"name": "\' }}}}{NAME}", "arguments": {{{{ c.function.arguments | tojson }}}}'
        "{{ '}' }}]</TOOLCALL>",
        [],
    ),
    "gemma": (
        f'<|tool_call>call:{NAME}{{% raw %}}{{{{% endraw %}}{ARGUMENTS}{{{{ k }}}}:<|"|>{{{{ v }}}}<|"|>'
        "{% endfor %}{% raw %}}{% endraw %}<tool_call|>",
        ["<|tool_call>", "<tool_call|>", '<|"|>'],
    ),
    "deepseek": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{NAME}<｜tool▁sep｜>{{{{ c.function.arguments | tojson }}}}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [f"<｜tool▁{one}｜>" for one in ("calls▁begin", "call▁begin", "sep", "call▁end", "calls▁end")],
    ),
    "deepseek_r1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{NAME}\n```json\n"
        "{{ c.function.arguments | tojson }}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [],
    ),
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_a_call_is_forced_in_each_format(tmp_path, name):
    call, signs = OTHER_FORMATS[name]
    template = (
        "{% if tools %}{{ tools | tojson }}{% endif %}"
        "{% for m in messages %}<|start|>{{ m.role }}: {{ m.content }}"
        "{% for c in m.tool_calls or [] %}CALL{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant: {% endif %}"
    ).replace("CALL", call)
    tiny_model.write(tmp_path / "tiny.gguf", template=template, context=2048, signs=signs)
    tools = [TOOLS[0], json.loads(json.dumps(TOOLS[0]).replace("get_weather", "get_rain"))]
    with serving(tmp_path / "tiny.gguf", "--id", "m") as server:
        assert server.request("GET", "/v1/models/m")[2]["tool_format"] == name
        for seed in range(6):
            choice = ask(
                server, tools=tools, tool_choice="required", parallel_tool_calls=False, temperature=1, seed=seed
            )["choices"][0]
            ((called, arguments),) = calls(choice)
            assert choice["finish_reason"] == "tool_calls" and not choice["message"]["content"]
            assert called in ("get_weather", "get_rain") and list(arguments) == ["city", "days"]
            assert len(arguments["city"]) <= 20 and arguments["days"] <= 14
            named = {"type": "function", "function": {"name": "get_rain"}}
            choice = ask(server, tools=tools, tool_choice=named, temperature=1, seed=seed)["choices"][0]
            assert [called for called, _ in calls(choice)] == ["get_rain"]
    with zinc_rt.Engine(tmp_path / "tiny.gguf") as engine:
        tokens, _, _ = tiny_model.vocabulary(signs)
        answer = engine.chat(ASK, tools=tools, tool_choice="get_rain", max_tokens=200)
        # What is a token of the vocabulary is written as that token.
        assert all(answer.token_ids.count(tokens.index(sign)) in (1, 2) for sign in signs)


def test_strict_tools_leave_text_free(server):
    tools = json.loads(json.dumps(TOOLS))
    tools[0]["function"]["strict"] = True
    free = ask(server, tools=TOOLS, max_tokens=40)["choices"][0]["message"]
    bound = ask(server, tools=tools, max_tokens=40)["choices"][0]["message"]
    assert bound.get("tool_calls") or bound["content"]
    if not free.get("tool_calls") and not bound.get("tool_calls"):
        assert bound["content"]


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {"type": "null"}}}}},
            "response_format.json_schema.schema",
            "/not",
        ),
        ({"json_schema": {"properties": {"a": {"if": {}, "then": False}}}}, "json_schema", "/properties/a/if"),
        ({"regex": "a", "grammar": 'root ::= "a"'}, "grammar", "beside"),
        ({"regex": "a", "ignore_eos": True}, "regex", "ignore_eos"),
        ({"response_format": {**WORDS_TAG, "triggers": [" no"]}}, "response_format", 'the trigger " no"'),
        ({"response_format": {"type": "structural_tag", "format": {"type": "x"}}}, "response_format", "format.type"),
        ({"response_format": {**WORDS_TAG, "x": 1}}, "response_format.x", "no such field"),
        ({"response_format": {"type": "text", "triggers": []}}, "response_format.triggers", "structural_tag"),
        ({"structured_outputs": {"structural_tag": "{"}}, "structured_outputs.structural_tag", "unexpected end"),
        ({"structured_outputs": {"structural_tag": 1}}, "structured_outputs.structural_tag", "1 is given"),
        (
            {
                "response_format": {
                    **WORDS_TAG,
                    "structures": [{"begin": " a", "schema": {"not": {"type": "null"}}, "end": ""}],
                }
            },
            "response_format",
            "structures[0].schema: [schema] /not",
        ),
        ({"regex": "a", "tools": TOOLS, "tool_choice": "required"}, "regex", "both"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice", "fly"),
        ({"tool_choice": "required"}, "tool_choice", "without tools"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(server, fields, param, words):
    error = ask(server, wanted=400, **fields)["error"]
    assert error["param"] == param
    assert words in error["message"]


def test_a_strict_tool_with_a_schema_that_cannot_be_had(server):
    tool = {
        "name": "f",
        "strict": True,
        "parameters": {"type": "object", "properties": {"a": {"not": {"type": "null"}}}},
    }
    error = ask(server, wanted=400, tools=[{"type": "function", "function": tool}])["error"]
    assert error["param"] == "tools"
    assert "/properties/a/not" in error["message"]


def test_hostile_schemas_end_soon(server):
    deep = {"type": "integer"}
    for _ in range(60):
        deep = {"type": "array", "items": deep}
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(3000)}}
    for schema in (deep, wide, {"enum": [f"v{i}" for i in range(20000)]}, {"pattern": ".*a.{20}", "type": "string"}):
        status, _, answer = server.request(
            "POST", "/v1/chat/completions", {"messages": ASK, "max_tokens": 30, "json_schema": schema}, timeout=30
        )
        assert status in (200, 400), answer
        if status == 400:
            assert "grammar_too_complex" in answer["error"]["message"] or "[schema]" in answer["error"]["message"]


def test_from_python(demo_model):
    with zinc_rt.Engine(demo_model, max_context=2048, tools="hermes") as engine:
        check(engine.chat(ASK, max_tokens=200, response_format=JSON_SCHEMA).text)
        assert engine.generate("It is ", choice=["day", "night"]).text in ("day", "night")
        assert re.fullmatch("[0-9]{4}", engine.generate("It is ", regex="[0-9]{4}").text)
        assert engine.generate("It is ", grammar='root ::= "so" "."').text == "so."
        tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "so!"}}
        assert engine.generate("It is ", response_format=tag).text == "so!"
        answer = engine.chat(ASK, tools=TOOLS, tool_choice="get_weather", max_tokens=200)
        (call,) = answer.tool_calls
        assert call.name == "get_weather"
        assert list(json.loads(call.arguments)) == ["city", "days"]
        pieces = [
            p for e in engine.tenant("t").session().stream(messages=ASK, tools=TOOLS, max_tokens=9) for p in e.pieces
        ]
        assert all(piece.kind == "text" for piece in pieces)
        for wrong in ({"regex": "("}, {"regex": "a", "choice": ["b"]}, {"response_format": {"type": "xml"}}):
            with pytest.raises(zinc_rt.errors.InvalidArgument):
                engine.generate("a", **wrong)


def test_from_the_command_line(demo_model, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    run = [
        *PROGRAM,
        "run",
        demo_model,
        "--chat",
        "Describe Anna, who is 30.",
        "--json-schema",
        tmp_path / "schema.json",
    ]
    check(subprocess.run([*map(str, run), "-n", "200"], capture_output=True, text=True, check=True).stdout)
