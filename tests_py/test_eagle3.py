"""EAGLE-3's draft blocks as the draft model of the model that they were made for, and of others."""

import pathlib

import pytest

from zinc_rt import Engine
from zinc_rt.errors import Corrupt, Unavailable

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests_data"
MODELS, BLOCKS = DATA / "models", DATA / "blocks"
MODEL = MODELS / "tiny_smollm3-f16.gguf"
ASKED = {"token_ids": list(range(5, 40)), "max_tokens": 40, "ignore_eos": True, "return_logits_hash": True}


def answers_of(**options):
    with Engine(MODEL, tier="t_cpu", max_slots=2, max_context=256, **options) as engine:
        session = engine.tenant("a").session()
        answers = [session.generate(**ASKED, **more) for more in ({}, {"temperature": 0.8, "seed": 5})]
        return [(a.token_ids, a.logits_hashes, a.text) for a in answers], engine.stats(), engine.model_card()


@pytest.fixture(scope="module")
def wanted():
    return answers_of(speculate="off")[0]


@pytest.mark.parametrize("block", ["eagle3-shared", "eagle3-whole"])
def test_a_block_changes_no_answer(wanted, block):
    got, stats, card = answers_of(speculate="4", draft_model=str(BLOCKS / f"{block}.gguf"))
    assert got == wanted
    assert stats["draft_model_steps"] > 0 and stats["failed_draft_model_steps"] == 0
    assert card["draft_model"]["architecture"] == "eagle3"


def test_a_block_alone_is_no_model():
    with pytest.raises(Unavailable, match="is no model: files of eagle3 are draft models"):
        Engine(BLOCKS / "eagle3-whole.gguf", tier="t_cpu")


def test_a_block_of_another_model_is_refused_with_both_numbers():
    other = MODELS / "tiny_olmo2-f16.gguf"
    with pytest.raises(Unavailable, match="the input of layer 3 is a feature .* this model has 2 layers"):
        Engine(other, tier="t_cpu", draft_model=str(BLOCKS / "eagle3-whole.gguf"))
    narrow = MODELS / "tiny_cohere2-f16.gguf"
    with pytest.raises(Unavailable, match="reads 144 features a token, and .* gives 96"):
        Engine(narrow, tier="t_cpu", draft_model=str(BLOCKS / "eagle3-whole.gguf"))
    with pytest.raises(Corrupt, match='says 448 tokens, tensor "token_embd.weight" has 304 rows'):
        Engine(narrow, tier="t_cpu", draft_model=str(BLOCKS / "eagle3-shared.gguf"))
