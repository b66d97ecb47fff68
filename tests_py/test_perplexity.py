"""Perplexity of a fixed text on the demo model: what int8 activations and a 16-bit KV cache cost in quality."""

import pathlib

import numpy as np
import pytest

import zinc_rt

# Prose of several registers, written for this test and published nowhere else: 1,323 tokens of SmolLM2.
PROSE = pathlib.Path(__file__).parent.parent / "cpp" / "tools" / "prose.txt"
WINDOW = 512


def perplexity(model, **options):
    """Over windows of 512 tokens that know nothing of each other; the first token of each is given."""
    log_likelihood, n = 0.0, 0
    with zinc_rt.Engine(model, max_slots=1, max_context=WINDOW, **options) as engine:
        ids = engine.tokenize(PROSE.read_text())
        for at in range(0, len(ids), WINDOW):
            window = ids[at : at + WINDOW]
            logits = engine.logits(window)[:-1].astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            log_likelihood += log_p[np.arange(len(window) - 1), window[1:]].sum()
            n += len(window) - 1
    return float(np.exp(-log_likelihood / n))


@pytest.mark.slow
def test_int8_is_within_half_a_percent_of_float(demo_model):
    exact = perplexity(demo_model, activations="f32", kv_dtype="f32")
    for options in ({}, {"kv_dtype": "f32"}):
        found = perplexity(demo_model, **options)
        print(
            f"perplexity {found:.3f} with {options or 'the defaults'}, {exact:.3f} in float: {found / exact - 1:+.3%}"
        )
        assert found == pytest.approx(exact, rel=0.005)
