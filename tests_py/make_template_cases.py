"""Writes tests_cpp/jinja/data/template_cases.jsonl: conversations, and what Python's jinja2 renders for each template.

Usage: python tests_py/make_template_cases.py DATA_FOLDER FIXTURE_TEMPLATES   (needs jinja2 3.1)
First line: the conversations by name. Then a line a template: its name and the text (or error) by conversation.
"""

import json
import pathlib
import sys

from jinja_oracle import render

SYS = {"role": "system", "content": "You are a careful assistant.\nAnswer briefly."}
HI = {"role": "user", "content": "Hi!"}
ANSWER = {"role": "assistant", "content": "Hello, how can I help?"}
NEXT = {"role": "user", "content": "  What is 2 + 2?\n"}
UNICODE = {"role": "user", "content": "Ünïcödé 你好 🎉 «test» \"q\" 'x' \\ <b>&amp;</b> \t\u00a0end\u2028"}
THINK = {"role": "assistant", "content": "<think>\nLet me see.\n</think>\n\n4"}
REASON = {"role": "assistant", "content": "4", "reasoning_content": "two and two\n"}
PARTS = {
    "role": "user",
    "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what is it?"}],
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00001",
            "type": "function",
            "function": {
                "name": "get_weather",
                "arguments": {"city": "Zürich", "days": 3, "opts": {"unit": "°C", "x": [1, 2.5, None, True]}},
            },
        }
    ],
}
CALL_NONE = {**CALL, "content": None}
CALL_TEXT = {
    "role": "assistant",
    "content": "Let me check.",
    "tool_calls": [
        CALL["tool_calls"][0],
        {"id": "call00002", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": -2}}},
    ],
}
CALL_STRING = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}],
}
RESULT = {"role": "tool", "content": '{"temp": 21.5}', "tool_call_id": "call00001", "name": "get_weather"}
RESULT2 = {"role": "tool", "content": "-1", "tool_call_id": "call00002"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": 'Weather of a city, "now" or later.',
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name, e.g. Genève"},
                    "days": {"type": "integer", "default": 1},
                    "unit": {"type": "string", "enum": ["°C", "°F"]},
                    "opts": {
                        "type": "object",
                        "properties": {"deep": {"type": "array", "items": {"type": "number"}}},
                        "required": ["deep"],
                    },
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds.",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "first"},
                    "b": {"type": ["number", "string"]},
                    "l": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["a", "b"],
            },
        },
    },
]
DOCS = [{"doc_id": 1, "title": "A", "text": "alpha"}, {"doc_id": 2, "text": "beta <x>"}]
BASE = {"bos_token": "<s>", "eos_token": "</s>"}


def talk(*messages, **extra):
    return {"messages": list(messages), "add_generation_prompt": True, **extra}


CONVERSATIONS = {
    "one": talk(HI),
    "one_closed": talk(HI, ANSWER, add_generation_prompt=False),
    "system": talk(SYS, HI),
    "turns": talk(SYS, HI, ANSWER, NEXT),
    "turns_closed": talk(HI, ANSWER, NEXT, THINK, add_generation_prompt=False),
    "unicode": talk(UNICODE, ANSWER, UNICODE),
    "thinking": talk(SYS, NEXT, THINK, HI, REASON, NEXT, enable_thinking=True, thinking=True),
    "no_thinking": talk(SYS, NEXT, REASON, NEXT, enable_thinking=False, reasoning_effort="low"),
    "reasoning_last": talk(NEXT, REASON, add_generation_prompt=False),
    "tools": talk(SYS, HI, tools=TOOLS),
    "tools_no_system": talk(NEXT, tools=TOOLS[1:], enable_thinking=False),
    "tool_round": talk(HI, CALL, RESULT, tools=TOOLS[:1]),
    "tool_round_closed": talk(SYS, HI, CALL, RESULT, ANSWER, add_generation_prompt=False),
    "tool_none": talk(HI, CALL_NONE, RESULT, tools=TOOLS[1:]),
    "tool_two": talk(SYS, HI, CALL_TEXT, RESULT, RESULT2, ANSWER, NEXT),
    "tool_string": talk(HI, CALL_STRING, {"role": "tool", "content": "3"}),
    "parts": talk(PARTS, ANSWER, HI),
    "system_parts": talk({"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, PARTS),
    "documents": talk(SYS, NEXT, documents=DOCS),
    "wrong_order": talk(ANSWER, HI, HI),
    "odd_role": talk(HI, {"role": "critic", "content": "No."}),
    "empty": talk(),
    "null_content": talk({"role": "user", "content": None}),
    "none_given": talk(SYS, HI, tools=None, documents=None),
}


def main() -> None:
    data = pathlib.Path(sys.argv[1])
    own = sorted((data / "templates").glob("*.jinja"))
    fixtures = sorted(pathlib.Path(sys.argv[2]).glob("*.jinja"))
    lines = [json.dumps({"base": BASE, "conversations": CONVERSATIONS}, ensure_ascii=False)]
    n = 0
    for path in own + fixtures:
        source = path.read_text()
        outputs = {}
        for name, conversation in CONVERSATIONS.items():
            try:
                outputs[name] = render(source, {**BASE, **conversation})
            except Exception as e:
                outputs[name] = {"error": f"{type(e).__name__}: {e}"[:120]}
            n += 1
        lines.append(json.dumps({"template": path.name, "own": path in own, "outputs": outputs}, ensure_ascii=False))
    (data / "template_cases.jsonl").write_text("\n".join(lines) + "\n")
    print(n, "renders")


main()
