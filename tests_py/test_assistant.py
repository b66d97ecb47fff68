"""An assistant of Gemma 4 as the draft model of the model that it was made for, and of others."""

import pathlib

import pytest

from zinc_rt import Engine
from zinc_rt.errors import Unavailable

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests_data"
MODELS = DATA / "models"
MODEL = MODELS / "tiny_gemma4-f16.gguf"
ASSISTANT = DATA / "blocks" / "assistant-tiny_gemma4.gguf"
ASKED = {"token_ids": list(range(5, 40)), "max_tokens": 40, "ignore_eos": True, "return_logits_hash": True}


def answers_of(**options):
    with Engine(MODEL, tier="t_cpu", max_slots=2, max_context=256, **options) as engine:
        session = engine.tenant("a").session()
        answers = [session.generate(**ASKED, **more) for more in ({}, {"temperature": 0.8, "seed": 5})]
        return [(a.token_ids, a.logits_hashes, a.text) for a in answers], engine.stats(), engine.model_card()


@pytest.mark.parametrize("kv_dtype", ["f16", "i16"])
def test_an_assistant_changes_no_answer(kv_dtype):
    wanted, *_ = answers_of(speculate="off", kv_dtype=kv_dtype)
    got, stats, card = answers_of(speculate="4", draft_model=str(ASSISTANT), kv_dtype=kv_dtype)
    assert got == wanted
    assert stats["draft_model_steps"] > 0 and stats["failed_draft_model_steps"] == 0
    assert card["draft_model"]["architecture"] == "gemma4-assistant"


def test_an_assistant_alone_is_no_model():
    with pytest.raises(Unavailable, match="is no model: files of gemma4-assistant are draft models"):
        Engine(ASSISTANT, tier="t_cpu")


def test_an_assistant_of_another_model_is_refused_with_both_numbers():
    with pytest.raises(Unavailable, match="made for a model of width 32, and .* has 48"):
        Engine(MODELS / "tiny_gemma4_moe-f16.gguf", tier="t_cpu", draft_model=str(ASSISTANT))
    with pytest.raises(Unavailable, match="guesses for models of gemma4, and .* is one of smollm3"):
        Engine(MODELS / "tiny_smollm3-f16.gguf", tier="t_cpu", draft_model=str(ASSISTANT))
