"""The notebooks are stored with what they gave, and run from top to bottom, with the demo model and with a tiny one."""

import base64
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TINY = ROOT / "tests_data" / "models" / "tiny_llama_k-Q4_K_M.gguf"
MOST_BYTES = 100_000


def cells(path):
    return json.loads(path.read_text())["cells"]


def pictures(path):
    outputs = [output for cell in cells(path) for output in cell.get("outputs", ())]
    return [base64.b64decode(o["data"]["image/png"]) for o in outputs if "image/png" in o.get("data", {})]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_is_stored_as_it_ran(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert "smollm2-135m-instruct.gguf" in json.dumps(code[0]["outputs"])
    outputs = json.dumps([cell["outputs"] for cell in code])
    assert '"output_type": "error"' not in outputs and not re.search(r"/(home|root|tmp|Users|work)/", outputs)
    assert pictures(path) and path.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_readme_shows_a_picture_of_it(path):
    link = re.search(
        rf"\[!\[[^\]]+\]\((docs/images/[\w.]+)\)\]\(notebooks/{path.name}\)", (ROOT / "README.md").read_text()
    )
    assert (ROOT / link[1]).read_bytes() in pictures(path)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "demo"])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs(path, model, request, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (pip install '.[notebooks]')")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (pip install '.[notebooks]')")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[notebooks]')")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (pip install '.[notebooks]')")
    chosen = TINY if model == "tiny" else request.getfixturevalue("demo_model")
    monkeypatch.setenv("ZRT_DEMO_MODEL", str(chosen))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert chosen.name in json.dumps(notebook.cells)
