"""Conversations made up by hypothesis, rendered by the C++ engine and by Python's jinja2: the texts must be equal, or
both must refuse."""

import os
import pathlib
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import meta

import zinc_rt
from conversations import contexts
from fixture_models import NO_SHARED, ROOT, SHARED
from jinja_oracle import environment
from zinc_rt.errors import InvalidArgument

DEMO = pathlib.Path(os.environ.get("ZRT_DEMO_MODEL", ROOT / ".cache/zinc_rt/smollm2-135m-instruct.gguf"))


def embedded_template(path):
    """The chat template in a GGUF file, found without reading the file's other keys; None if there is none."""
    with open(path, "rb") as file:
        head = file.read(32 << 20)
    at = head.find(b"tokenizer.chat_template")
    if at < 0:
        return None
    at += len(b"tokenizer.chat_template")
    kind, size = struct.unpack_from("<IQ", head, at)
    assert kind == 8, f"{path}: the template has type {kind}, 8 (string) wanted"
    return head[at + 12 : at + 12 + size].decode()


def all_templates():
    """Name to text: the repository's own, real models' where the fixtures are there. Of equal texts one stays."""
    paths = [*(ROOT / "tests_py/data/templates").glob("*.jinja"), *SHARED.glob("templates/*.jinja")]
    paths += (ROOT / "tests_cpp/jinja/data/templates").glob("*.jinja")
    found = {path.name: path.read_text() for path in sorted(paths)}
    for path in [*sorted(SHARED.glob("models/*.gguf")), *sorted(SHARED.glob("vocab/*.gguf")), DEMO]:
        if path.is_file() and (source := embedded_template(path)) and source not in found.values():
            found[path.name] = source
    return found


TEMPLATES = all_templates()
ORACLE = environment()
# name: the same template in both engines.
PAIRS = {name: (zinc_rt.ChatTemplate(text), ORACLE.from_string(text)) for name, text in TEMPLATES.items()}
VARIABLES = set().union(*(meta.find_undeclared_variables(ORACLE.parse(text)) for text in TEMPLATES.values()))
LENIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}


def compare(context):
    for name, (ours, oracle) in PAIRS.items():
        try:
            expected = oracle.render(**context)
        except Exception as error:  # whatever Python raises: a template's own, or a type that does not fit
            try:
                text = ours.render(**context)
            except InvalidArgument:
                continue
            pytest.fail(f"{name}: rendered {text!r}, jinja2 raised {error!r}")
        assert ours.render(**context) == expected, name


@settings(max_examples=150, **LENIENT)
@given(contexts(VARIABLES))
def test_renders_as_jinja2(context):
    compare(context)


@pytest.mark.slow
@settings(max_examples=2000, **LENIENT)
@given(contexts(VARIABLES))
def test_renders_as_jinja2_at_length(context):
    compare(context)


def test_templates_of_real_models_are_among_them():
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    assert {"Qwen3.5-4B.jinja", "phi3-f32.gguf", "qwen2-f32.gguf"} <= set(TEMPLATES)


def test_raise_exception_carries_its_message():
    with pytest.raises(InvalidArgument, match="roles must alternate"):
        zinc_rt.ChatTemplate("{{ raise_exception('roles must alternate') }}").render(messages=[])


def test_syntax_error_names_its_line():
    with pytest.raises(InvalidArgument, match="line 2"):
        zinc_rt.ChatTemplate("a\n{% if %}")


def test_lone_surrogates_are_refused():
    with pytest.raises(InvalidArgument, match="surrogates"):
        zinc_rt.ChatTemplate("{{ a }}").render(a="\ud800")


WRAPPED = st.lists(
    st.sampled_from(
        [
            "a",
            "bc",
            "é",
            "1",
            "_",
            "!",
            '"',
            "-",
            "--",
            "---",
            " ",
            "  ",
            "\t",
            "\n",
            "\r\n",
            "\xa0",
            "well-known",
            "你好",
        ]
    ),
    max_size=24,
).map("".join)


@settings(max_examples=400, **LENIENT)
@given(WRAPPED, st.integers(1, 12), st.booleans(), st.booleans(), st.sampled_from(["None", "'|'", "'\\n '"]))
def test_words_wrap_as_pythons(text, width, words, hyphens, between):
    source = f"{{{{ x|wordwrap({width}, {words}, {between}, {hyphens}) }}}}"
    assert zinc_rt.ChatTemplate(source).render(x=text) == ORACLE.from_string(source).render(x=text)
