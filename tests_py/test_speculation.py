"""Guesses of the next tokens from Python: what is guessed changes how many steps there are, and nothing else."""

import pytest

from zinc_rt import Engine, TenantQuota
from zinc_rt.errors import InvalidArgument

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


def test_recurrent_models_take_no_guesses(hybrid_model):
    with Engine(hybrid_model, tier="t_cpu", speculate="8") as engine:
        session = engine.tenant("guesses").session()
        plain, wanted = answer_of(session, speculate="off")
        answer, got = answer_of(session, prediction_token_ids=plain.token_ids)
        assert got == wanted and answer.timings.draft_tokens == 0


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
