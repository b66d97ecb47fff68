"""The models of the fixtures, for parametrizing tests: the repository's, and those beside the checkout if any."""

import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = ROOT / "tests_data"
SHARED = ROOT.parent / "shared" / "fixtures"
# A second set, whose models have families and weight formats that came later.
FAMILIES = SHARED / "families"
# Models of that set which are refused so far. Who adds a family or a format deletes its line;
# test_fixtures.py::test_models_that_do_not_run_yet_are_refused fails until then.
NOT_YET = {
    "llama4",
}
# The same words as in tests_cpp/fixtures.h, since the test command counts equal reasons.
NO_SHARED = "no reference fixtures in ../shared/fixtures"
FLOAT_TYPES = ("f32", "f16", "bf16")


def _names(folder):
    return sorted(path.stem for path in (folder / "models").glob("*.gguf"))


def _is_float(name):
    return name.rsplit("-", 1)[1] in FLOAT_TYPES


def _model_of(name):
    return name if name.startswith("fmt-") else name.rsplit("-", 1)[0]


def own_models():
    return _names(OWN)


def family_models():
    """The models of the second set that run."""
    return [name for name in _names(FAMILIES) if _model_of(name) not in NOT_YET]


def models_not_yet():
    return [name for name in _names(FAMILIES) if _model_of(name) in NOT_YET]


def base_models():
    return [name for name in own_models() + _names(SHARED) + family_models() if _is_float(name)]


def quantized_models():
    return [name for name in own_models() + _names(SHARED) + family_models() if not _is_float(name)]


def shared_quantized_models():
    """Those for which another engine's logits are stored, too."""
    return [name for name in _names(SHARED) + family_models() if not _is_float(name)]


def or_skipped(parameters):
    """Without parameters one of a test that is skipped, so that its reason is counted."""
    return parameters or [pytest.param("none", marks=pytest.mark.skip(reason=NO_SHARED))]


def folder_of(name):
    return next((folder for folder in (OWN, FAMILIES) if name in _names(folder)), SHARED)


def model_path(name):
    path = folder_of(name) / "models" / f"{name}.gguf"
    if not path.is_file():
        pytest.skip(NO_SHARED)
    return path


def reference(name):
    """The stored logits; float files of one model share them."""
    return np.load(folder_of(name) / "ref" / f"{name.rsplit('-', 1)[0] if _is_float(name) else name}.npz")


def prompts(ref):
    return sorted({key.split("/")[0] for key in ref.files})


def a_few_fast(names, fast=("Q4_K_M", "Q8_0")):
    """Parameters of which those with the given types alone are in the fast set."""
    return [name if name.rsplit("-", 1)[1] in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]
