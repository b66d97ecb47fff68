"""The formats with grids, the ternary ones and NVFP4 against another program: values of blocks, logits of models."""

import numpy as np
import pytest

import zinc_rt
from fixture_models import NO_SHARED, SHARED
from quant_formats import dequantize

FAMILIES = SHARED / "families"
TYPES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0", "NVFP4", "MXFP4")
MODELS = ("fmt-IQ2", "fmt-IQ3_IQ1", "fmt-TQ", "fmt-NVFP4")


def reference(name):
    path = FAMILIES / "ref" / f"{name}.npz"
    if not path.is_file():
        pytest.skip(NO_SHARED)
    return np.load(path)


@pytest.mark.parametrize("name", TYPES)
def test_numpy_widens_blocks_as_others_do(name):
    """tests_cpp/kernels/quant_test.cpp holds the kernels to the same values, and to the integer sums."""
    ref = reference("formats")
    assert set(TYPES) == {key.split("/")[0] for key in ref.files} - {"x"}
    values = dequantize(name.lower(), ref[f"{name}/raw"].tobytes(), ref[f"{name}/deq"].shape)
    assert (values == ref[f"{name}/deq"]).all()


@pytest.mark.parametrize("name", MODELS)
def test_logits_match_those_of_dequantized_weights(name):
    ref = reference(name)
    path = FAMILIES / "models" / f"{name}.gguf"
    with (
        zinc_rt.Engine(path, kv_dtype="f32", activations="f32") as floats,
        zinc_rt.Engine(path) as engine,
        zinc_rt.Engine(path, repack=False, fusion="0") as plain,
    ):
        for prompt in ("p7", "p70"):
            ids, wanted = ref[f"{prompt}/prompt"].tolist(), ref[f"{prompt}/exact_logits"]
            assert np.abs(floats.logits(ids)[-len(wanted) :] - wanted).max() <= 1e-3
            logits = engine.logits(ids)
            assert (plain.logits(ids) == logits).all()
            for chunk in (1, 2, 5, 16, 33):
                assert (engine.logits(ids, chunk=chunk) == logits).all(), chunk
            # Another program rounds activations in blocks of the same sizes, and sums in another order.
            native = ref[f"{prompt}/native_logits"].astype(np.float32)
            exact = wanted[-len(native) :]
            ours, theirs = (np.abs(x[-len(native) :] - exact).mean() for x in (logits, native))
            assert ours <= 1.25 * theirs
