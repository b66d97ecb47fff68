"""A model's own block for multi-token prediction as its draft model, in the model's file or in a file of its own."""

import pathlib

import pytest

from zinc_rt import Engine
from zinc_rt.errors import InvalidArgument, Unavailable

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests_data"
MODELS = DATA / "models"
WITH_BLOCK = MODELS / "tiny_qwen35_mtp-f16.gguf"
BLOCK_ALONE = DATA / "blocks" / "mtp-tiny_qwen35.gguf"
ASKED = {"token_ids": list(range(5, 40)), "max_tokens": 40, "ignore_eos": True, "return_logits_hash": True}


def answer_of(**options):
    with Engine(WITH_BLOCK, tier="t_cpu", max_slots=2, max_context=256, **options) as engine:
        session = engine.tenant("a").session()
        answers = [session.generate(**ASKED, **more) for more in ({}, {"temperature": 0.8, "seed": 5})]
        return [(a.token_ids, a.logits_hashes, a.text) for a in answers], engine.stats()


@pytest.fixture(scope="module")
def wanted():
    return answer_of(speculate="off")[0]


def test_the_models_own_block_changes_no_answer(wanted):
    got, stats = answer_of(speculate="4", draft_model="mtp")
    assert got == wanted
    assert stats["draft_model_steps"] > 0 and stats["failed_draft_model_steps"] == 0


def test_a_block_in_a_file_of_its_own_guesses_the_same(wanted):
    got, stats = answer_of(speculate="4", draft_model=str(BLOCK_ALONE))
    assert got == wanted
    _, own = answer_of(speculate="4", draft_model="mtp")
    assert [stats[name] for name in ("draft_tokens", "accepted_draft_tokens")] == [
        own[name] for name in ("draft_tokens", "accepted_draft_tokens")
    ]


def test_a_block_alone_is_no_model():
    with pytest.raises(Unavailable, match="block 2 alone, for multi-token prediction, of 3 blocks"):
        Engine(BLOCK_ALONE, tier="t_cpu")


def test_a_model_without_a_block_says_so():
    with pytest.raises(InvalidArgument, match="has 0 blocks for multi-token prediction") as caught:
        Engine(MODELS / "tiny_qwen35-f16.gguf", tier="t_cpu", draft_model="mtp")
    assert caught.value.field == "draft_model"
