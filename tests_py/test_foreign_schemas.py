"""Schemas that pydantic and zod make: each compiles, and random answers that it allows are valid by jsonschema."""

import decimal
import json
import pathlib
import random

import pytest

from grammar_partner import Partner, token_bytes

DATA = pathlib.Path(__file__).parent / "data"
# Assertions that are not enforced are refused, by their place.
REFUSED = {
    "Sets": "[schema] /properties/a/uniqueItems: this keyword is not enforced",
}
MAX_STEPS = 3000


def schemas(name):
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()[1:]
    return [(one["name"], one["schema"]) for one in map(json.loads, lines)]


ALL = schemas("pydantic_schemas.jsonl") + schemas("zod_schemas.jsonl")


VOCABULARY = DATA.parent.parent / "tests_data" / "models" / "tiny_llama-f32.gguf"


@pytest.fixture(scope="module")
def partner():
    made = Partner(VOCABULARY)
    made.tokens, made.ends = token_bytes(VOCABULARY)
    yield made
    made.close()


def answer(partner, rng):
    """A random text that the grammar allows. The longer it gets, the more it is of signs that close something."""
    text, in_string = b"", False
    for step in range(MAX_STEPS):
        mask = int.from_bytes(partner.mask(), "little")
        allowed = [i for i, token in enumerate(partner.tokens) if mask >> i & 1 and len(token) == 1]
        may_end = any(mask >> end & 1 for end in partner.ends)
        if may_end and (not allowed or step > 100 or rng.random() < 0.3):
            return text
        assert allowed, text
        closing = [i for i in allowed if partner.tokens[i] in (b'"' if in_string else b"}]")]
        graphic = [i for i in allowed if partner.tokens[i] not in b" \t\r\n"] or allowed
        number = rng.choice(closing if closing and rng.random() < 0.1 + step / 200 else graphic)
        assert partner.token(number)
        in_string ^= partner.tokens[number] == b'"' and not (in_string and text.endswith(b"\\"))
        text += partner.tokens[number]
    raise AssertionError("no end: " + repr(text[:500]))


def exact_number(text):
    return float(text) if "e" in text.lower() else decimal.Decimal(text)


@pytest.mark.parametrize("name, schema", ALL, ids=[name for name, _ in ALL])
def test_each_compiles_and_its_answers_are_valid(partner, name, schema):
    jsonschema = pytest.importorskip("jsonschema", reason="no jsonschema; pip install jsonschema")
    why = partner.compile(schema)
    assert why.startswith(REFUSED[name]) if name in REFUSED else not why
    if name in REFUSED:
        return
    # 40.9 is a multiple of 0.05, but not in doubles.
    exact = json.loads(json.dumps(schema), parse_float=exact_number)
    draft = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    if '"exclusiveMinimum": true' in json.dumps(schema):  # which was so before draft 6
        draft = jsonschema.Draft4Validator
    validator = draft(exact)
    for seed in range(3):
        partner.compile(schema)
        text = answer(partner, random.Random(seed))
        validator.validate(json.loads(text, parse_float=exact_number))


def test_there_are_many():
    assert len(ALL) > 150 and not REFUSED.keys() - dict(ALL).keys()
