"""Conversations made up by hypothesis, rendered by the C++ engine and by Python's jinja2: the texts must be equal."""

import pathlib

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zinc_rt
from jinja_oracle import environment
from zinc_rt.errors import InvalidArgument

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = sorted((ROOT / "tests_cpp/tokenizer/data/templates").glob("*.jinja"))
FIXTURES = sorted((ROOT / "../shared/fixtures/templates").glob("*.jinja"))
TEMPLATES = {path.name: path.read_text() for path in OWN + FIXTURES}

PIECES = st.sampled_from(
    ["<think>", "</think>", "\n", "<tool_response>", "</tool_response>", "/no_think", " ", "<|", "{{", "é", "🎉"]
)
TEXT = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(PIECES, max_size=6).map("".join),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), VALUES, max_size=3)
PARTS = st.lists(
    st.one_of(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), st.just({"type": "image"})), max_size=3
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.just("abcdefghi"),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.sampled_from(["f", "g"]), "arguments": ARGUMENTS}),
        }
    ),
    min_size=1,
    max_size=2,
)
MESSAGE = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant"]), "content": st.one_of(TEXT, TEXT, PARTS)}
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": st.one_of(TEXT, st.none()), "tool_calls": CALLS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXT, "reasoning_content": st.one_of(TEXT, st.none())}
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "content": TEXT, "tool_call_id": st.just("abcdefghi"), "name": st.just("f")}
    ),
)
SCHEMA = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean"])},
        optional={"description": TEXT, "enum": st.lists(TEXT, min_size=1, max_size=2)},
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), inner, max_size=3),
            },
            optional={"required": st.just(["a"])},
        ),
    ),
    max_leaves=5,
)
TOOL = st.fixed_dictionaries(
    {
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["f", "g"]),
                "description": TEXT,
                "parameters": st.fixed_dictionaries(
                    {
                        "type": st.just("object"),
                        "properties": st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), SCHEMA, max_size=3),
                        "required": st.just(["a"]),
                    }
                ),
            }
        ),
    }
)
CONTEXT = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=6), "add_generation_prompt": st.booleans()},
    optional={
        "tools": st.one_of(st.none(), st.lists(TOOL, min_size=1, max_size=2)),
        "enable_thinking": st.booleans(),
        "documents": st.none(),
        "bos_token": st.just("<s>"),
        "eos_token": st.just("</s>"),
    },
)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(context=CONTEXT)
def test_renders_as_jinja2(name, context):
    source = TEMPLATES[name]
    ours = zinc_rt.ChatTemplate(source)
    try:
        expected = environment().from_string(source).render(**context)
    except (jinja2.TemplateError, TypeError, AttributeError):
        with pytest.raises(InvalidArgument):
            ours.render(**context)
        return
    assert ours.render(**context) == expected


def test_raise_exception_carries_its_message():
    with pytest.raises(InvalidArgument, match="roles must alternate"):
        zinc_rt.ChatTemplate("{{ raise_exception('roles must alternate') }}").render(messages=[])


def test_syntax_error_names_its_line():
    with pytest.raises(InvalidArgument, match="line 2"):
        zinc_rt.ChatTemplate("a\n{% if %}")
