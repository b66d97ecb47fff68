"""A model's own block for multi-token prediction as its draft model, in the model's file or in a file of its own."""

import pathlib

import pytest

import gguf_file
from zinc_rt import Engine
from zinc_rt.errors import InvalidArgument, Unavailable

MODELS = pathlib.Path(__file__).resolve().parent.parent / "tests_data" / "models"
WITH_BLOCK = MODELS / "tiny_qwen35_mtp-f16.gguf"
ASKED = {"token_ids": list(range(5, 40)), "max_tokens": 40, "ignore_eos": True, "return_logits_hash": True}
ALONE = ("token_embd.weight", "output_norm.weight", "blk.2.")


@pytest.fixture(scope="module")
def block_alone(tmp_path_factory):
    """The model's metadata, with the tensors that such files have."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("mtp") / "mtp-tiny.gguf"
    reader = gguf.GGUFReader(WITH_BLOCK)
    metadata = {
        name: field.contents()
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.") and name != "general.alignment"
    }
    tensors = {
        tensor.name: (tuple(int(n) for n in reversed(tensor.shape)), int(tensor.tensor_type), tensor.data.tobytes())
        for tensor in reader.tensors
        if tensor.name.startswith(ALONE)
    }
    gguf_file.write(path, metadata, tensors)
    return path


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


def test_a_block_in_a_file_of_its_own_guesses_the_same(wanted, block_alone):
    got, stats = answer_of(speculate="4", draft_model=str(block_alone))
    assert got == wanted
    _, own = answer_of(speculate="4", draft_model="mtp")
    assert [stats[name] for name in ("draft_tokens", "accepted_draft_tokens")] == [
        own[name] for name in ("draft_tokens", "accepted_draft_tokens")
    ]


def test_a_block_alone_is_no_model(block_alone):
    with pytest.raises(Unavailable, match="block 2 alone, for multi-token prediction, of 3 blocks"):
        Engine(block_alone, tier="t_cpu")


def test_a_model_without_a_block_says_so():
    with pytest.raises(InvalidArgument, match="has 0 blocks for multi-token prediction") as caught:
        Engine(MODELS / "tiny_qwen35-f16.gguf", tier="t_cpu", draft_model="mtp")
    assert caught.value.field == "draft_model"
