"""Engine.embed and Session.embed: arrays of embeddings, the same bits however they are asked for."""

import concurrent.futures

import numpy as np
import pytest

import tiny_model as tiny
import zinc_rt
from zinc_rt import errors

TEXTS = ["hello", "the then there", "a longer text about the thing and another in there", "x"]


@pytest.fixture(scope="module", params=["mean", "last"])
def engine(request, tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=4, chunk_cap=16, pooling=request.param) as engine:
        yield engine


def test_texts_become_rows_of_length_one(engine):
    rows = engine.embed(TEXTS)
    assert rows.shape == (len(TEXTS), tiny.DIM) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-6)


def test_each_has_the_bits_that_it_has_alone(engine):
    texts = [f"{'the ' * (i % 9)}text {i}" for i in range(100)]
    rows = engine.embed(texts)
    for text, row in zip(texts[:30], rows, strict=False):
        assert engine.embed(text).tobytes() == row.tobytes()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(engine.embed, [texts[i : i + 25] for i in range(0, 100, 25)]))
    assert np.concatenate(parts).tobytes() == rows.tobytes()


def test_token_ids_are_the_text(engine):
    ids = [engine.tokenize(text) for text in TEXTS]
    rows = engine.embed(TEXTS)
    assert engine.embed(ids).tobytes() == rows.tobytes()
    assert engine.embed(ids[1]).tobytes() == rows[1].tobytes()
    assert engine.embed([TEXTS[0], ids[1]]).tobytes() == rows[:2].tobytes()


def test_dimensions_cut(engine):
    whole, cut = engine.embed(TEXTS), engine.embed(TEXTS, 8)
    wanted = whole[:, :8].astype(np.float64)
    assert np.allclose(cut, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)


def test_a_session_embeds_for_its_tenant(engine):
    tenant = engine.tenant("alice")
    before = tenant.ledger().tokens_prompted
    rows = tenant.session().embed(TEXTS)
    assert rows.tobytes() == engine.embed(TEXTS).tobytes() == engine.embed(TEXTS, tenant="bob").tobytes()
    assert tenant.ledger().tokens_prompted - before == sum(len(engine.tokenize(text)) for text in TEXTS)


def test_the_card_says_so(engine):
    card = engine.model_card()
    assert card["pooling"] in ("mean", "last") and card["embedding_dim"] == tiny.DIM


def test_what_is_wrong_is_refused(engine, tiny_model):
    with pytest.raises(errors.InvalidArgument, match="dimensions is 65, 1 to 64 allowed"):
        engine.embed("a", 65)
    with pytest.raises(errors.InvalidArgument, match="dimensions is 0"):
        engine.embed("a", 0)
    with pytest.raises(errors.InvalidArgument, match=r"token id 9999, the vocabulary has 448"):
        engine.embed([[1], [9999]])
    with pytest.raises(errors.InvalidArgument, match="tokens"):
        engine.embed("the " * 3000)
    with pytest.raises(errors.InvalidArgument, match="an empty list"):
        engine.embed([])
    with pytest.raises(errors.InvalidArgument, match="gives embeddings .* and generates nothing"):
        engine.generate("a")
    with pytest.raises(errors.Unavailable, match="has no logits"):
        engine.logits([1, 2])
    with zinc_rt.Engine(tiny_model, max_slots=2) as other:
        with pytest.raises(errors.InvalidArgument, match="generates and gives no embeddings"):
            other.embed("a")
        assert "pooling" not in other.model_card()
    with pytest.raises(errors.InvalidArgument, match="pooling"):
        zinc_rt.Engine(tiny_model, pooling="max")
