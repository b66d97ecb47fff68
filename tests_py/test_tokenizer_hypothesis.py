"""Text made up by hypothesis, through every vocabulary that is at hand: ids and back give the text."""

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zinc_rt
from conversations import PIECES
from fixture_models import SHARED

# SmolLM2 is not among them: its vocabulary has no token for some bytes (0xF1 and others), which are dropped.
FILES = [
    SHARED / "vocab/ggml-vocab-qwen2.gguf",
    SHARED / "vocab/ggml-vocab-phi-3.gguf",
    SHARED / "models/gemma3-f16.gguf",
    SHARED / "models/gemma4_moe-f16.gguf",
    SHARED / "models/qwen35-f32.gguf",
]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\u2581")  # U+2581 is how some write a space
TEXT = st.one_of(
    st.text(CHARACTERS, max_size=60),
    st.lists(st.one_of(PIECES, st.text(CHARACTERS, min_size=1, max_size=3)), max_size=20).map("".join),
    st.tuples(CHARACTERS, st.integers(1, 5000)).map(lambda run: run[0] * run[1]),
)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory, tiny_model):
    return [zinc_rt.Tokenizer(str(path)) for path in [tiny_model, *FILES] if path.is_file()]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXT)
def test_ids_give_the_text_back(tokenizers, text):
    for tokenizer in tokenizers:
        ids = tokenizer.encode(text, add_special=False, parse_special=False)
        assert all(0 <= i < tokenizer.n_vocab for i in ids)
        # Some vocabularies take text in Unicode's form C.
        assert tokenizer.decode(ids) in (text, unicodedata.normalize("NFC", text))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXT, more=TEXT)
def test_a_special_token_parts_the_text(tokenizers, text, more):
    """What stands before and after the end token is encoded as if it stood alone, whatever it is."""
    for tokenizer in tokenizers[:1]:
        mark = tokenizer.decode([tokenizer.eos_id])
        both = tokenizer.encode(text + mark + more, add_special=False)
        parts = [tokenizer.encode(part, add_special=False) for part in (text, more)]
        assert both == [*parts[0], tokenizer.eos_id, *parts[1]]
