"""Hypothesis strategies of conversations as chat templates get them, right and wrong ones."""

import unicodedata

from hypothesis import strategies as st

# What templates look for, what ends in a JSON text, and what Python and C++ may take for different classes.
PIECES = st.sampled_from(
    [
        *[
            "<think>",
            "</think>",
            "<think>\n\n</think>\n\n",
            "<tool_response>",
            "</tool_response>",
            "/no_think",
            "/think",
        ],
        *[
            "\n",
            "\r\n",
            " ",
            "\t",
            "\v\f",
            "\x1c\x1f",
            "\x85",
            "\xa0",
            "\u2028",
            "\u3000",
            "\u180e",
            "\u200b",
            "\ufeff",
        ],
        *["<|im_end|>", "<|", "{{", "{% if %}", "#}", "[INST]", '"', "'", "\\", "\\n", "&<>", "/", "\0", "\x7f", "%s"],
        *[
            "é",
            "e\u0301",
            "ß",
            "İ",
            "ǆ",
            "ﬁ",
            "你好",
            "שלום",
            "\u202e",
            "🎉",
            "👨\u200d👩\u200d👧",
            "\ud7ff\ue000",
            "\U0010ffff",
        ],
    ]
)
CHARACTERS = st.characters(exclude_categories=["Cs"])
if unicodedata.unidata_version != "14.0.0":  # of cpp/jinja/unicode_tables.cpp: newer ones know more characters
    CHARACTERS = CHARACTERS.filter(lambda c: unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs"))
TEXT = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.lists(PIECES, max_size=6).map("".join),
    st.lists(PIECES, max_size=4).map("".join),
)
# Longer than any buffer or short-string form that a renderer might have.
LONG_TEXT = st.tuples(st.text(CHARACTERS, min_size=1, max_size=8), st.integers(500, 20_000)).map(lambda t: t[0] * t[1])
NAMES = st.one_of(st.sampled_from(["f", "get_weather", "a.b", "größe", ""]), st.text(CHARACTERS, max_size=6))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0.0, -0.0, 1e16, 1e-5, 123456789012345680.0, 0.1, 1e300, 5e-324, 2**53]),
        TEXT,
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.one_of(st.dictionaries(NAMES, VALUES, max_size=3), st.just({}))
PART = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}),
    st.sampled_from([{"type": "image"}, {"type": "video"}, {"type": "image_url", "image_url": {"url": "x"}}]),
    st.fixed_dictionaries({"type": st.just("text")}, optional={"text": VALUES}),
)
PARTS = st.lists(PART, max_size=3)
CALL = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {"name": NAMES, "arguments": st.one_of(ARGUMENTS, ARGUMENTS, st.just('{"a": 1}'), st.none())}
            ),
        },
        optional={"id": st.sampled_from(["abcdefghi", "call_1", ""])},
    ),
    st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}),
)
CALLS = st.lists(CALL, max_size=2)
CONTENT = st.one_of(TEXT, TEXT, TEXT, PARTS, st.none())
ROLES = st.sampled_from(
    ["user", "assistant", "system", "tool", "developer", "ipython", "tool_results", "critic", "User"]
)


REASONING = st.one_of(TEXT, TEXT, st.none())
THOUGHTS = {"reasoning_content": REASONING, "reasoning": REASONING, "thinking": REASONING}
RESULT_IDS = {"tool_call_id": st.sampled_from(["abcdefghi", "call_1"]), "name": NAMES, "tool_responses": PARTS}


def _message(role, content=CONTENT, **more):
    return st.fixed_dictionaries({"role": st.just(role), "content": content}, optional=more)


ANY_MESSAGE = st.one_of(
    _message("user"),
    _message("system") | _message("developer"),
    _message("assistant", tool_calls=CALLS | st.none(), **THOUGHTS),
    _message("tool", **RESULT_IDS) | _message("tool", VALUES),
    st.fixed_dictionaries({}, optional={"role": ROLES, "content": VALUES, "tool_calls": VALUES}),
)
PLAIN_CALL = st.fixed_dictionaries(
    {
        "id": st.just("abcdefghi"),
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}),
    }
)


@st.composite
def _in_order(draw, content, call, first="system", tool_rounds=(0, 1, 2)):
    """System first if at all, then user and assistant in turn, calls answered."""
    messages = [{"role": first, "content": draw(content)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(content)})
        for _ in range(draw(st.sampled_from(tool_rounds))):
            calls = draw(st.lists(call, min_size=1, max_size=draw(st.sampled_from([1, 1, 2]))))
            messages.append(draw(_message("assistant", content, **THOUGHTS)) | {"tool_calls": calls})
            for _ in calls:
                messages.append({"role": "tool", "content": draw(content), "tool_call_id": "abcdefghi"})
        messages.append(draw(_message("assistant", content, **THOUGHTS)))
    if draw(st.booleans()):
        messages.append({"role": "user", "content": draw(content)})
    if draw(st.integers(0, 9)) == 0:
        messages[-1]["content"] = draw(LONG_TEXT)
    return messages


MESSAGES = st.one_of(
    _in_order(TEXT, PLAIN_CALL, tool_rounds=(0,)),
    _in_order(TEXT, PLAIN_CALL),
    _in_order(CONTENT, CALL),
    _in_order(CONTENT, CALL, first="developer"),
    st.lists(ANY_MESSAGE, max_size=5),
)

SCHEMA = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean", ["string", "null"], "STRING"])},
        optional={
            "description": TEXT,
            "enum": st.lists(TEXT, min_size=1, max_size=2),
            "default": VALUES,
            "nullable": st.booleans(),
        },
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"description": TEXT}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
            optional={"required": st.lists(NAMES, max_size=2), "description": TEXT},
        ),
    ),
    max_leaves=5,
)
PARAMETERS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, SCHEMA, max_size=3)},
    optional={"required": st.lists(NAMES, max_size=2)},
)
FUNCTION = st.fixed_dictionaries(
    {"name": NAMES, "description": TEXT, "parameters": PARAMETERS},
    optional={"return": SCHEMA, "response": SCHEMA, "strict": st.booleans()},
)
WRAPPED = st.fixed_dictionaries({"type": st.just("function"), "function": FUNCTION})
TOOLS = st.one_of(
    st.none(), st.lists(WRAPPED, max_size=2), st.lists(WRAPPED, min_size=1, max_size=2), st.lists(FUNCTION, max_size=2)
)
SWITCH = st.one_of(
    st.booleans(), st.none(), st.sampled_from(["low", "high", "", "2025-01-31"]), st.integers(-1, 2), TEXT
)
# Variables with a shape of their own; every other one that a template names is a switch.
KNOWN = {
    "tools": TOOLS,
    "custom_tools": TOOLS,
    "xml_tools": TOOLS,
    "builtin_tools": st.lists(st.sampled_from(["f", "code_interpreter"]), max_size=2),
    "documents": st.none()
    | st.lists(st.dictionaries(st.sampled_from(["title", "text", "doc_id"]), VALUES), max_size=2),
    "bos_token": st.sampled_from(["<s>", "<|begin_of_text|>", ""]),
    "eos_token": st.sampled_from(["</s>", "<|im_end|>"]),
}


def contexts(variables):
    """Contexts for templates that read these variables; the tokens that transformers always gives seldom miss."""
    names = sorted(set(variables) - {"messages", "add_generation_prompt", "strftime_now", "raise_exception"})
    switches = {name: KNOWN.get(name, SWITCH) for name in names}
    base = {"messages": MESSAGES, "add_generation_prompt": st.booleans()}
    given = {name: switches[name] for name in ("bos_token", "eos_token") if name in switches}
    usual = st.fixed_dictionaries(base | given, optional={k: v for k, v in switches.items() if k not in given})
    return st.one_of(usual, usual, usual, usual, st.fixed_dictionaries(base, optional=switches))
