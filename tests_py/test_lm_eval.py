"""lm-eval's adapter for servers gives the loglikelihoods of this package's own logits.

lm-eval is 760 MB with what it needs, so that it is no dependency of the tests: they run where it is installed."""

import logging

import numpy as np
import pytest

import zinc_rt
from server_process import serving

pytest.importorskip("lm_eval", reason="lm-eval[api] is not installed")
pytestmark = pytest.mark.slow

TEXTS = [
    ("The capital of France is", " Paris"),
    ("The capital of France is", " a city on the Seine."),
    ("2 + 2 =", " 4"),
    ("2 + 2 =", " 22"),
    ("Water boils at", " 100 degrees Celsius."),
    ("Once upon a time", ", there was a little girl."),
    ("Once upon a time ", "in a land far away"),
    ("def add(a, b):\n", "    return a + b\n"),
    ("A", "B"),
    ("Ein Satz auf Deutsch:", " Der Hund schläft."),
    ("日本語", "の文章"),
    ("Emoji: ", "🙂🙃"),
    ("{", '"key": [1, 2, 3]}'),
    ("The quick brown fox", " jumps over the lazy dog"),
    ("x" * 40, "y" * 10),
    ("To be or not to be,", " that is the question"),
    ("Roses are red,", " violets are blue"),
    ("one two three four", " five six seven eight nine ten"),
    ("Question: is water wet?\nAnswer:", " yes"),
    ("Question: is water wet?\nAnswer:", " no"),
]


@pytest.fixture(scope="module", params=["tiny_model", "demo_model"])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def engine(model):
    with zinc_rt.Engine(model, max_context=512) as engine:
        yield engine


@pytest.fixture(scope="module")
def adapter(model):
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    with serving(model, "--id", "it", "--max-context", 512) as server:
        yield LocalCompletionsAPI(
            model="it",
            base_url=f"{server.url}/v1/completions",
            tokenizer_backend="remote",
            num_concurrent=1,
            max_retries=1,
            max_length=512,
        )


def loglikelihood(engine, context_ids, ids):
    """Of the ids behind the context, and whether each is the most likely one."""
    logits = engine.logits([*context_ids, *ids], "all").astype(np.float64)[len(context_ids) - 1 : -1]
    logprobs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return logprobs[range(len(ids)), ids].sum(), bool((logits.argmax(axis=1) == ids).all())


def requests_of(kind, arguments):
    from lm_eval.api.instance import Instance

    return [
        Instance(request_type=kind, doc={}, arguments=one, idx=i, metadata=("t", 0, 1))
        for i, one in enumerate(arguments)
    ]


def test_loglikelihoods_are_those_of_the_logits(adapter, engine):
    found = adapter.loglikelihood(requests_of("loglikelihood", TEXTS), disable_tqdm=True)
    for (context, continuation), (value, is_greedy) in zip(TEXTS, found, strict=True):
        n_spaces = len(context) - len(context.rstrip())
        context_ids = engine.tokenize(context[: len(context) - n_spaces], add_special=False)
        ids = engine.tokenize(context + continuation, add_special=False)
        wanted, wanted_greedy = loglikelihood(engine, context_ids, ids[len(context_ids) :])
        assert value == pytest.approx(wanted, abs=1e-3), (context, continuation)
        assert is_greedy == wanted_greedy


def test_what_is_generated_is_the_engines(adapter, engine):
    arguments = [(context, {"until": ["\n\n"], "max_gen_toks": 12, "temperature": 0}) for context, _ in TEXTS[:6]]
    found = adapter.generate_until(requests_of("generate_until", arguments), disable_tqdm=True)
    session = engine.tenant("t").session()
    for (context, _), text in zip(arguments, found, strict=True):
        assert text == session.generate(context, max_tokens=12, stop=["\n\n", "<|end|>"]).text
