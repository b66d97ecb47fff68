"""Guesses of the next tokens from Python: what is guessed changes how many steps there are, and nothing else."""

import pytest

import tiny_model as tiny
from zinc_rt import Engine, TenantQuota
from zinc_rt.errors import InvalidArgument, NotFound, Unavailable

ASKED = {"token_ids": [5, 6, 7], "max_tokens": 40, "ignore_eos": True, "return_logits_hash": True}


@pytest.fixture(scope="module")
def engine(tiny_model):
    with Engine(tiny_model, tier="t_cpu", speculate="16") as engine:
        yield engine


@pytest.fixture(scope="module")
def session(engine):
    return engine.tenant("guesses").session()


def answer_of(session, **more):
    answer = session.generate(**ASKED, **more)
    return answer, (answer.token_ids, answer.logits_hashes, answer.text)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.9, "seed": 3, "repetition_penalty": 1.2}])
def test_a_right_prediction_takes_few_steps(engine, session, sampling):
    plain, wanted = answer_of(session, speculate="off", **sampling)
    assert plain.timings.draft_tokens == 0
    before = engine.stats()
    answer, got = answer_of(session, prediction_token_ids=plain.token_ids, **sampling)
    after = engine.stats()
    assert got == wanted
    assert (
        answer.timings.accepted_draft_tokens == answer.timings.draft_tokens == answer.usage.accepted_prediction_tokens
    )
    steps = after["steps"] - before["steps"]
    assert steps + answer.timings.accepted_draft_tokens == 40 and steps <= 5
    assert after["draft_tokens"] - before["draft_tokens"] == answer.timings.draft_tokens
    assert after["drafts"] > before["drafts"]


def test_a_wrong_prediction_changes_nothing(session):
    plain, wanted = answer_of(session, speculate="off")
    wrong = [(token + 1) % 250 for token in plain.token_ids]
    answer, got = answer_of(session, prediction_token_ids=wrong)
    assert got == wanted
    assert answer.timings.draft_tokens > 0
    assert answer.usage.rejected_prediction_tokens > 0


def test_a_request_gets_no_more_than_its_tenant_allows(engine, session):
    plain, wanted = answer_of(session)
    quota = TenantQuota(speculate="off")
    frugal = engine.tenant("frugal", quota)
    answer, got = answer_of(frugal.session(), prediction_token_ids=plain.token_ids, speculate="8")
    assert got == wanted and answer.timings.draft_tokens == 0
    frugal.quota.speculate = "2"
    answer, got = answer_of(frugal.session(), prediction_token_ids=plain.token_ids, speculate="8")
    assert got == wanted and frugal.quota == TenantQuota(speculate="2")
    assert 20 < answer.timings.draft_tokens == answer.timings.accepted_draft_tokens < 40
    frugal.quota.speculate = None
    assert answer_of(frugal.session())[1] == wanted and frugal.quota.speculate is None
    with pytest.raises(InvalidArgument, match='speculate is "33", auto, off or 1 to 32 wanted'):
        frugal.quota.speculate = "33"


def test_a_request_gets_no_more_than_the_engine_allows(tiny_model):
    with Engine(tiny_model, tier="t_cpu", speculate="off") as engine:
        session = engine.tenant("guesses").session()
        plain, wanted = answer_of(session)
        answer, got = answer_of(session, prediction_token_ids=plain.token_ids, speculate="32")
        assert got == wanted and answer.timings.draft_tokens == 0


def test_recurrent_models_keep_their_bits_with_guesses(hybrid_model):
    with Engine(hybrid_model, tier="t_cpu", speculate="12") as engine:
        session = engine.tenant("guesses").session()
        plain, wanted = answer_of(session, speculate="off")
        answer, got = answer_of(session, prediction_token_ids=plain.token_ids)
        assert got == wanted and answer.timings.accepted_draft_tokens > 20
        wrong = [5, *plain.token_ids[:10], 5, *plain.token_ids[11:]]
        answer, got = answer_of(session, prediction_token_ids=wrong)
        assert got == wanted and answer.timings.draft_tokens > answer.timings.accepted_draft_tokens


def test_a_logits_processor_sees_each_token_once(session):
    seen = []

    def look(ids, logits):
        seen.append(len(ids))

    session.generate(**ASKED, prediction_token_ids=[5] * 40, logits_processor=look)
    assert seen == list(range(3, 43))


@pytest.mark.parametrize("speculate", ["no", "0", "33", "-1", " 4"])
def test_other_words_are_refused(session, tiny_model, speculate):
    with pytest.raises(InvalidArgument, match="speculate"):
        session.generate("a", speculate=speculate)
    with pytest.raises(InvalidArgument, match="speculate"):
        Engine(tiny_model, tier="t_cpu", speculate=speculate)


def test_predictions_that_cannot_be(session):
    with pytest.raises(InvalidArgument, match="prediction"):
        session.generate("a", prediction="b", prediction_token_ids=[5])
    with pytest.raises(InvalidArgument, match=r"prediction_token_ids has \d+ tokens, \d+ allowed"):
        session.generate("a", prediction_token_ids=[5] * 100_000)
    with pytest.raises(InvalidArgument, match="token id 99999, the vocabulary has"):
        session.generate("a", prediction_token_ids=[5, 99999])
    with pytest.raises(InvalidArgument) as caught:
        session.generate("a", prediction="b" * 100_000)
    assert caught.value.field == "prediction"


def other_vocabulary(folder, name, tokens=None, types=None, seed=3):
    """A tiny model with other weights, and with this list of tokens if one is given."""
    path = folder / name
    plain_tokens, plain_types, _ = tiny.vocabulary()
    tokens, types = tokens or plain_tokens, types or plain_types
    keys = {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "llama.vocab_size": len(tokens),
    }

    def with_rows(name, values):
        return values[: len(tokens)] if name in ("token_embd.weight", "output.weight") else values

    tiny.write(path, seed=seed, keys=keys, change=with_rows)
    return str(path)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.9, "seed": 3, "repetition_penalty": 1.2}])
def test_a_draft_model_changes_steps_and_nothing_else(tiny_model, session, tmp_path, sampling):
    wanted = answer_of(session, speculate="off", **sampling)[1]
    for draft, is_itself in ((str(tiny_model), True), (other_vocabulary(tmp_path, "other.gguf"), False)):
        with Engine(tiny_model, tier="t_cpu", draft_model=draft) as engine:
            own = engine.tenant("drafts").session()
            answer, got = answer_of(own, speculate="6", **sampling)
            assert got == wanted
            assert answer_of(own, **sampling)[1] == wanted
            assert answer_of(own, speculate="off", **sampling)[1] == wanted
            assert engine.stats()["draft_model_steps"] > 0 == engine.stats()["failed_draft_model_steps"]
            assert answer.timings.draft_tokens > 0
            if is_itself and not sampling:
                assert answer.timings.accepted_draft_tokens == answer.timings.draft_tokens > 30
            card = engine.model_card()["draft_model"]
            assert card["file"] == draft and card["n_parameters"] > 0 < card["kv_pages"]


def test_a_draft_model_is_not_loaded_where_nothing_is_guessed(tiny_model):
    with Engine(tiny_model, tier="t_cpu", draft_model=str(tiny_model), speculate="off") as engine:
        assert "draft_model" not in engine.model_card()


def test_a_draft_model_is_found_by_the_environment(tiny_model, monkeypatch):
    monkeypatch.setenv("ZINC_RT_DRAFT_MODEL", str(tiny_model))
    with Engine(tiny_model, tier="t_cpu") as engine:
        assert engine.model_card()["draft_model"]["file"] == str(tiny_model)


def test_a_draft_model_of_another_vocabulary_is_refused(tiny_model, hybrid_model, tmp_path):
    tokens, types, _ = tiny.vocabulary()
    other = [*tokens[:300], "elsewhere", *tokens[301:]]
    with pytest.raises(InvalidArgument) as caught:
        Engine(tiny_model, tier="t_cpu", draft_model=other_vocabulary(tmp_path, "other.gguf", other))
    assert caught.value.field == "draft_model"
    for part in ('token 300 is "elsewhere" in ', "other.gguf (448 tokens)", f'"{tokens[300]}" in {tiny_model} (448'):
        assert part in str(caught.value)
    with pytest.raises(Unavailable, match=r"\(qwen35\) has recurrent state, \d+ bytes a slot"):
        Engine(tiny_model, tier="t_cpu", draft_model=str(hybrid_model))
    with pytest.raises(NotFound, match="/nowhere.gguf"):
        Engine(tiny_model, tier="t_cpu", draft_model="/nowhere.gguf")


def test_a_vocabulary_may_end_in_unused_tokens(session, tmp_path):
    """Files of one family are padded to different sizes."""
    tokens, types, _ = tiny.vocabulary()
    short = other_vocabulary(tmp_path, "short.gguf", tokens[:440], types[:440])
    padded = other_vocabulary(tmp_path, "padded.gguf", tokens, [*types[:440], *[5] * 8], seed=0)
    for model, draft in ((padded, short), (short, padded)):
        with Engine(model, tier="t_cpu") as engine:
            wanted = answer_of(engine.tenant("drafts").session())[1]
        with Engine(model, tier="t_cpu", draft_model=draft) as engine:
            assert answer_of(engine.tenant("drafts").session(), speculate="4")[1] == wanted
            assert engine.stats()["draft_model_steps"] > 0
    used = other_vocabulary(tmp_path, "used.gguf")
    with pytest.raises(InvalidArgument, match=r"used.gguf has 448 tokens, .*short.gguf has 440, and token 440 "):
        Engine(used, tier="t_cpu", draft_model=short)
