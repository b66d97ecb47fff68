"""What integers of 16 bits for float weights (docs/arithmetic.md, rule 4) cost a real model: nearly nothing."""

import numpy as np
import pytest

import widened_model
import zinc_rt
from fixture_models import ROOT

WINDOW = 512  # tokens; windows know nothing of each other


def log_likelihoods(path, **options):
    """Of each token of the text that `zinc-rt bench --kv-quality` reads, and the model's card."""
    text = (ROOT / "cpp" / "tools" / "prose.txt").read_text()
    found = []
    with zinc_rt.Engine(path, kv_dtype="f32", max_context=WINDOW, max_slots=1, **options) as engine:
        ids = engine.tokenize(text)[: 4 * WINDOW]
        for at in range(0, len(ids) - WINDOW + 1, WINDOW):
            window = ids[at : at + WINDOW]
            logits = engine.logits(window)[:-1].astype(np.float64)
            logits -= logits.max(axis=1, keepdims=True)
            picked = logits[np.arange(WINDOW - 1), window[1:]]
            found.append(picked - np.log(np.exp(logits).sum(axis=1)))
        return np.concatenate(found), engine.model_card()


@pytest.mark.slow
@pytest.mark.parametrize("matrices", ["bf16", "f16"])
def test_perplexity_is_that_of_floats(demo_model, tmp_path, matrices):
    path = tmp_path / "floats.gguf"
    widened_model.write(demo_model, path, matrices)
    integers, card = log_likelihoods(path)
    floats, _ = log_likelihoods(path, activations="f32")
    assert (
        card["computed_bytes_by_format"]["fixed16"] > 5e7
    )  # the model's down projections; its other rows are 576 wide
    change = np.exp(floats.mean() - integers.mean()) - 1
    print(f"{matrices}: perplexity {np.exp(-floats.mean()):.4f} by floats, by integers {change:+.1e} of it")
    assert abs(change) <= 1e-4
