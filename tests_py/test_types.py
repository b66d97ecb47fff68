"""What type checkers see: every typo is found, and what is right is left alone. The stub is what the package has."""

import inspect
import json
import pathlib
import re
import subprocess
import sys

import pytest

import zinc_rt
from zinc_rt import _core, _install, _signature
from zinc_rt._fields import ServerFields

TYPOS = pathlib.Path(__file__).resolve().parent / "data" / "typos.py"
CLASSES = {kind.__name__: kind for kind in _install.CLASSES}


def wrong_lines():
    return {n for n, line in enumerate(TYPOS.read_text().splitlines(), 1) if line.endswith("# wrong")}


def test_the_script_has_typos():
    assert len(wrong_lines()) >= 30


@pytest.mark.slow
def test_mypy_finds_all_typos(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed (scripts/test.sh --slow installs it)")
    run = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--python-executable", sys.executable, TYPOS]
    said = subprocess.run(run, capture_output=True, text=True, timeout=300).stdout
    assert {int(n) for n in re.findall(r"typos\.py:(\d+): error", said)} == wrong_lines(), said


@pytest.mark.slow
def test_pyright_finds_all_typos():
    pytest.importorskip("pyright", reason="pyright is not installed (scripts/test.sh --slow installs it)")
    run = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", TYPOS]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    if not done.stdout.startswith("{"):
        pytest.skip("pyright could not fetch its program")
    found = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    assert {each["range"]["start"]["line"] + 1 for each in found} == wrong_lines(), done.stdout


def test_the_stub_names_what_there_is():
    named = {(owner, name) for owner, name in _signature.stub().names() if owner in CLASSES}
    there = {
        (owner, name)
        for owner, kind in CLASSES.items()
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("_")
    }
    assert {each for each in named if not each[1].startswith("_")} == there
    source = pathlib.Path(_core.__file__).with_name("_core.pyi").read_text()
    for owner, kind in CLASSES.items():
        body = re.search(rf"^class {owner}\b.*?(?=^\S|\Z)", source, re.M | re.S)[0]
        for name, value in vars(kind).items():
            if isinstance(value, property) and not name.startswith("_"):
                assert f"def {name}(self)" in body or f"    {name}: " in body, f"{owner}.{name}"


def test_every_call_has_a_signature_and_words():
    for owner, kind in CLASSES.items():
        for name, call in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert call.__doc__ and len(call.__doc__) > 15, f"{owner}.{name}"
                assert "kwargs" not in inspect.signature(call).parameters
        if kind in _install.MADE_BY:
            with pytest.raises(zinc_rt.errors.InvalidType, match=f"{owner}. it is made by "):
                kind()
        else:
            assert "args" not in str(inspect.signature(kind))
    assert "max_slots: 'int' = 64" in str(inspect.signature(zinc_rt.Engine))


def test_names_and_defaults_of_generating_agree():
    source = pathlib.Path(_core.__file__).with_name("_core.pyi").read_text()
    for typed_dict, whole in _signature.WHOLE.items():
        body = re.search(rf"class {typed_dict}\b.*?\n(?=\S)", source, re.S)[0]
        fields = dict(re.findall(r"    (\w+): (.*?)(?:  #.*)?\n", body))
        keywords = {
            name: p.annotation
            for name, p in _signature.stub().signature(*whole).parameters.items()
            if p.kind is p.KEYWORD_ONLY and name != "max_models"
        }
        assert {name: re.sub(r"'", '"', text) for name, text in keywords.items()} == fields


def test_the_servers_fields_are_those_of_its_page():
    page = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "server.md").read_text()
    fields = page.split("## Fields\n")[1].split("\n## ")[0]  # its table is that of the server's readers
    rows = re.findall(r"^\| `(\w+)` \| ([\w, /]+) \|", fields, re.MULTILINE)
    taken = {name for name, takers in rows if {"chat", "completions"} & set(takers.split(", "))}
    # These have parameters of their own, or are the client's affair.
    assert taken - {"messages", "prompt", "stream", "stream_options"} == set(ServerFields.__annotations__)


def test_defaults_are_those_of_the_engine(tiny_model):
    def defaults(call):
        parameters = inspect.signature(call).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    with zinc_rt.Engine(tiny_model, **defaults(zinc_rt.Engine)) as engine, zinc_rt.Engine(tiny_model) as plain:
        assert engine.memory_plan() == plain.memory_plan() and engine.model_card() == plain.model_card()
        session = engine.tenant("t").session()
        given = defaults(session.generate) | {"prompt": "the"}
        assert session.generate(**given).token_ids == session.generate("the").token_ids
