import collections
import os
import pathlib
import shutil
import subprocess

import pytest

import synth_gguf
import tiny_model as tiny
import zinc_rt
from fixture_models import NO_SHARED, SHARED

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Files whose slow tests take longest, in that order: minutes to half a minute.
LONGEST = [
    "test_server_soak.py",
    "test_packages.py",
    "test_server_ledger.py",
    "test_server_hostile.py",
    "test_chat_template_hypothesis.py",
    "test_fixtures.py",
    "test_agents.py",
    "test_chat_page.py",
    "test_kv_types.py",
    "test_chat_page_agents.py",
    "test_perplexity.py",
    "test_notebooks.py",
]


def pytest_collection_modifyitems(items):
    """These begin first, then those with the most tests, so that no process is left with a long one at the end."""
    counts = collections.Counter(item.path.name for item in items)
    rank = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (rank.get(item.path.name, len(rank)), -counts[item.path.name], item.path.name))


@pytest.fixture(scope="session")
def fixtures():
    """Models, logits, vocabularies and templates that may lie beside the checkout, more than tests_data has."""
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    return SHARED


@pytest.fixture(scope="session")
def demo_model():
    """The real model that scripts/demo.sh fetches."""
    path = pathlib.Path(os.environ.get("ZRT_DEMO_MODEL", ROOT / ".cache" / "zinc_rt" / "smollm2-135m-instruct.gguf"))
    if not path.is_file():
        pytest.skip(f"no demo model ({path.name}); scripts/demo.sh fetches it")
    return path


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """axe-core's source, of the page's own packages."""
    folder = ui = ROOT / "cpp" / "server" / "ui"
    if not (folder / "node_modules").is_dir():
        if not shutil.which("npm"):
            pytest.skip("no npm")
        folder = tmp_path_factory.mktemp("ui")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ui / name, folder / name)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    tiny.write(path)
    return path


@pytest.fixture(scope="session")
def tiny_engine(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=8) as engine:
        yield engine


@pytest.fixture(scope="session")
def hybrid_model(tmp_path_factory):
    """Delta net beside attention: slots have state that is no KV."""
    path = tmp_path_factory.mktemp("models") / "hybrid.gguf"
    assert synth_gguf.main(["tiny-qwen35", "-o", str(path), "--types", "F16", "--width", "96"]) == 0
    return path


@pytest.fixture(params=["llama", "hybrid"])
def any_model(request):
    return request.getfixturevalue("tiny_model" if request.param == "llama" else "hybrid_model")
