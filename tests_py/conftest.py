import os
import pathlib

import pytest

import tiny_model as tiny
import zinc_rt
from fixture_models import FIXTURES

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def fixtures():
    """Reference models and logits that lie beside the checkout on the project's own machines."""
    path = FIXTURES
    if not path.is_dir():
        pytest.skip(f"no reference fixtures at {path}")
    return path


@pytest.fixture(scope="session")
def demo_model():
    """The real model that scripts/demo.sh fetches."""
    path = pathlib.Path(os.environ.get("ZRT_DEMO_MODEL", ROOT / ".cache" / "zinc_rt" / "smollm2-135m-instruct.gguf"))
    if not path.is_file():
        pytest.skip(f"no demo model at {path}; scripts/demo.sh fetches it")
    return path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    tiny.write(path)
    return path


@pytest.fixture(scope="session")
def tiny_engine(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=8) as engine:
        yield engine
