"""The options of an engine are one table: the stub, the commands and the example of a configuration have all of it."""

import re
import subprocess

import pytest

import zinc_rt
from server_process import PROGRAM
from zinc_rt import _signature

# What Engine() takes besides: the model, and who hears how loading goes.
NO_OPTIONS = {"self", "model", "progress", "on_progress"}
ROW = re.compile(r"^  (?P<name>\w+) \((?P<default>.*?)\): (?P<help>.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def options():
    """Names and defaults, as help(Engine) has them from the table."""
    found = {row["name"]: row["default"] for row in ROW.finditer(zinc_rt.Engine.__doc__)}
    assert len(found) > 20
    return found


def help_of(*command):
    return subprocess.run([*PROGRAM, *command], capture_output=True, text=True, check=True).stdout


def test_the_stub_has_each_with_its_default(options):
    stub = _signature.stub().signature("Engine", "__init__").parameters
    assert set(stub) - NO_OPTIONS == set(options)
    for name, default in options.items():
        wanted = stub[name].default
        assert wanted is None or str(wanted) == default, name


def test_a_further_model_has_all_but_those_of_the_engine(options):
    stub = _signature.stub().signature("Engine", "add_model").parameters
    assert set(options) - set(stub) == {"max_models"}


@pytest.mark.parametrize("command", ["run", "chat", "serve", "bench"])
def test_commands_have_a_flag_for_each(command, options):
    flags = set(re.findall(r"--([\w-]+)", help_of(command, "--help")))
    other_names = {"cpu_kernels": "kernels"}
    for name in set(options) - {"max_models"}:
        assert other_names.get(name, name).replace("_", "-") in flags, name


def test_the_example_of_a_configuration_has_each(options):
    example = help_of("serve", "--example-config")
    models = example.split("\n[[models]]\n")[1].split("\n[")[0]
    assert set(re.findall(r"^#? ?(\w+) =", models, re.MULTILINE)) == {"path", "id", "served_names"} | set(options) - {
        "max_models"
    }


@pytest.mark.parametrize("name", ["kv_dtype", "pooling", "arithmetic", "activations", "tools"])
def test_choices_of_the_stub_are_those_of_the_engine(name, tiny_model):
    annotation = _signature.stub().signature("Engine", "__init__").parameters[name].annotation
    choices = re.findall(r"'([^']+)'", annotation)
    flag = "--" + name.replace("_", "-")
    ran = subprocess.run([*PROGRAM, "info", tiny_model, flag, "neither"], capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    refusal = re.search(rf'{name} "neither" is not one of (.+)', ran.stderr)
    assert choices and refusal.group(1).split(", ") == choices
