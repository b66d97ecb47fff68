"""The names of the reference fixtures' models, for parametrizing tests; empty lists where there are none."""

import pathlib

import pytest

FIXTURES = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "fixtures"
FLOAT_TYPES = ("f32", "f16", "bf16")


def _names():
    return sorted(path.stem for path in (FIXTURES / "models").glob("*.gguf"))


def base_models():
    return [name for name in _names() if name.rsplit("-", 1)[1] in FLOAT_TYPES]


def quantized_models():
    return [name for name in _names() if name.rsplit("-", 1)[1] not in FLOAT_TYPES]


def a_few_fast(names, fast=("Q4_K_M", "Q8_0")):
    """Parameters of which those with the given types alone are in the fast set."""
    return [name if name.rsplit("-", 1)[1] in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]
