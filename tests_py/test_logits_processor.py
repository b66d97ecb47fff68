"""Functions that change the logits of a request before each pick."""

import threading

import numpy as np
import pytest

import zinc_rt
from tenant_helpers import FREE, HASHED
from zinc_rt import errors


@pytest.fixture
def session(tiny_engine):
    return tiny_engine.tenant("processors").session()


def only(token):
    """Leaves one token."""

    def processor(token_ids, logits):
        keep = logits[token]
        logits[:] = -np.inf
        logits[token] = keep

    return processor


def test_it_sees_the_tokens_so_far_and_the_models_logits(tiny_engine, session):
    seen = []
    plain = session.generate("the thin", max_tokens=4, **HASHED)
    watched = session.generate(
        "the thin",
        max_tokens=4,
        logits_processor=lambda ids, logits: seen.append((ids.tolist(), logits.copy(), ids.dtype, logits.dtype)),
        **HASHED,
    )
    assert watched.token_ids == plain.token_ids and watched.logits_hashes == plain.logits_hashes
    prompt = tiny_engine.tokenize("the thin")
    rows = tiny_engine.logits(prompt + plain.token_ids)[len(prompt) - 1 : -1]
    assert [ids for ids, *_ in seen] == [prompt + plain.token_ids[:n] for n in range(4)]
    assert all((got == row).all() for (_, got, *_), row in zip(seen, rows, strict=True))
    assert {(i, f) for *_, i, f in seen} == {(np.dtype("int32"), np.dtype("float32"))}


def test_it_decides_in_place_or_by_what_it_returns(session):
    assert session.generate("the", max_tokens=3, logits_processor=only(65), **FREE).token_ids == [65] * 3

    def other(token_ids, logits):
        return np.where(np.arange(len(logits)) == 66 + len(token_ids) % 2, 1.0, 0.0)  # float64, a new array

    tokens = session.generate(token_ids=[1, 2], max_tokens=4, logits_processor=other, **FREE).token_ids
    assert tokens == [66, 67, 66, 67]


def test_several_run_in_order(session):
    calls = []

    def first(token_ids, logits):
        calls.append("first")
        logits[:] = 0
        logits[70] = 5

    def second(token_ids, logits):
        calls.append("second")
        assert logits[70] == 5
        logits[71] = 6

    assert session.generate("the", max_tokens=2, logits_processor=[first, second], **FREE).token_ids == [71, 71]
    assert calls == ["first", "second"] * 2
    plain = session.generate("the", max_tokens=2, **FREE)
    assert session.generate("the", max_tokens=2, logits_processor=[], **FREE).token_ids == plain.token_ids


def test_it_runs_before_bias_penalties_and_temperature(session):
    def flat(token_ids, logits):
        logits[:] = 0
        logits[70] = 1

    run = {"max_tokens": 3, "logits_processor": flat, **FREE}
    assert session.generate("the", logit_bias={71: 2.0}, **run).token_ids == [71] * 3
    assert session.generate("the", presence_penalty=2.0, **run).token_ids[:1] == [70]
    assert 70 not in session.generate("the", presence_penalty=2.0, **run).token_ids[1:]
    drawn = session.generate("the", temperature=5.0, seed=3, **{**run, "max_tokens": 40}).token_ids
    assert len(set(drawn)) > 20
    assert drawn == session.generate("the", temperature=5.0, seed=3, **{**run, "max_tokens": 40}).token_ids


def test_logprobs_and_hashes_are_the_models(session):
    processed = session.generate("the", max_tokens=1, logprobs=3, logits_processor=only(65), **HASHED)
    plain = session.generate("the", max_tokens=1, logprobs=3, **HASHED)
    assert processed.logits_hashes == plain.logits_hashes
    assert processed.logprobs[0].top == plain.logprobs[0].top and processed.logprobs[0].token_id == 65


def test_others_in_the_batch_keep_their_bits(tiny_engine):
    prompts = [f"the {i}" for i in range(6)]
    wanted = [tiny_engine.generate(p, max_tokens=12, temperature=0.8, seed=5, **HASHED) for p in prompts]
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            tiny_engine.generate("an", max_tokens=20, tenant="busy", logits_processor=only(65), **FREE)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        for _ in range(5):
            got = tiny_engine.generate(prompts, max_tokens=12, temperature=0.8, seed=5, **HASHED)
            assert [c.token_ids for c in got] == [c.token_ids for c in wanted]
            assert [c.logits_hashes for c in got] == [c.logits_hashes for c in wanted]
    finally:
        stop.set()
        thread.join()


def test_choices_are_processed_each(session):
    lengths = []
    completion = session.generate(
        "the", n=3, max_tokens=2, temperature=1.0, logits_processor=lambda ids, logits: lengths.append(len(ids)), **FREE
    )
    assert len(completion.choices) == 3 and len(lengths) == 6


def raises(token_ids, logits):
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    "processor, words",
    [
        (raises, "it raised KeyError: 'no such thing'"),
        (lambda ids, logits: "a text", "it returned "),
        (lambda ids, logits: logits[:3], r"an array of shape \(3,\); an array of shape \(448,\) or None is wanted"),
        (lambda ids, logits: logits.fill(-np.inf), "no finite number"),
        (lambda ids, logits: logits.fill(np.nan), "no finite number"),
    ],
)
def test_what_goes_wrong_ends_that_request_alone(tiny_engine, session, processor, words):
    other = session.stream("an", max_tokens=100, **FREE)
    bad = tiny_engine.stats()["bad_logits"]
    stream = session.stream("the", max_tokens=5, logits_processor=processor, **FREE)
    with pytest.raises(errors.InvalidArgument, match=words):
        list(stream)
    assert stream.completion.finish_reason == "processor_failed" and stream.completion.token_ids == []
    assert tiny_engine.stats()["bad_logits"] == bad  # the model is well
    assert other.finish().usage.completion_tokens == 100


def test_one_that_fails_late_keeps_what_was_said(session):
    def late(token_ids, logits):
        if len(token_ids) == 4:
            raise RuntimeError("enough")

    stream = session.stream(token_ids=[1, 2], max_tokens=9, logits_processor=late, **FREE)
    with pytest.raises(errors.InvalidArgument, match="it raised RuntimeError: enough"):
        stream.finish()
    assert len(stream.completion.token_ids) == 2


def test_it_must_not_call_the_engine(tiny_engine, session):
    def calls(token_ids, logits):
        tiny_engine.detokenize(token_ids.tolist())  # waits for nothing
        session.generate("the")

    with pytest.raises(errors.InvalidArgument, match="it raised InvalidArgument: .* called the engine"):
        session.generate("the", max_tokens=2, logits_processor=calls)


def test_it_is_kept_no_longer_than_its_request(tiny_model):
    import gc
    import weakref

    class Processor:
        def __call__(self, token_ids, logits):
            self.last = token_ids  # arrays may be kept

    processor = Processor()
    with zinc_rt.Engine(tiny_model) as engine:
        engine.generate("the", max_tokens=2, logits_processor=processor)
        assert len(processor.last) > 0
        gone = weakref.ref(processor)
        del processor
        gc.collect()
    assert gone() is None


def test_what_is_no_processor_is_named(session):
    with pytest.raises(errors.InvalidType, match="logits_processor is int 3; a callable"):
        session.generate("the", logits_processor=3)
    with pytest.raises(errors.InvalidType, match=r"logits_processor\[1\] is None; a callable is wanted"):
        session.generate("the", logits_processor=[print, None])
