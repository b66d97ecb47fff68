"""Every command of the program, found by its help: each says what it takes, and takes a model with -m and without."""

import json
import re
import subprocess

import pytest

from server_process import PROGRAM


def zinc(*words):
    return subprocess.run(
        [*PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )


def help_of(command):
    result = zinc(*command, "--help")
    assert (result.returncode, result.stderr) == (0, ""), command
    return result.stdout


def section(text, *titles):
    """The words with which the lines under a heading begin. CLI11 writes headings as `Options:` or `OPTIONS:`."""
    words, inside = [], False
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            inside = line[:-1].lower() in titles
        elif inside and (match := re.match(r"  (\S+)", line)):
            words.append(match[1])
    return words


GROUPS = (
    *("use a model", "models by name", "look at a model", "compare and measure", "look at a device", "this program"),
    "subcommands",
)


def commands_below(command=()):
    for name in section(help_of(command), *GROUPS):
        yield (*command, name)
        yield from commands_below((*command, name))


@pytest.fixture(scope="module")
def helps():
    return {command: help_of(command) for command in [(), *commands_below()]}


def test_there_are_these_commands(helps):
    assert {("run",), ("serve",), ("bench", "serve"), ("completion",), ("rm",)} <= set(helps)


def test_a_positional_has_a_name_that_no_option_has(helps):
    """CLI11 2.4 refuses a program whose option is called like a positional of the command or of one above it."""
    for command, text in helps.items():
        for positional in section(text, "positionals"):
            assert positional == positional.upper(), f"zinc-rt {' '.join(command)}: {positional}"
        for option in re.findall(r"--([\w-]+)", text):
            assert option == option.lower(), f"zinc-rt {' '.join(command)}: --{option}"


def test_a_model_is_named_by_an_option_or_without(helps, tmp_path):
    """Each command that opens one says of both ways that the file is not there."""
    absent, n = str(tmp_path / "absent.gguf"), 0
    body = {"model": "absent", "prompt": "a"}
    line = {"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": body}
    (tmp_path / "requests").write_text(json.dumps(line) + "\n")
    more = {
        "run": ("-p", "a"),
        "run-batch": (str(tmp_path / "requests"), str(tmp_path / "answers")),
        "tokenize": ("a",),
        "validate": ("--tiers", "t_cpu,t_cpu", "--prompt", "a"),
        "trace": ("--out", str(tmp_path / "trace.json")),
    }
    for command, text in helps.items():
        option = re.search(r"^  (-m)\b", text, re.MULTILINE)
        if option is None or "MODEL" not in section(text, "positionals"):
            continue
        n += 1
        rest = more.get(command[-1], ())
        said = [zinc(*command, *way, *rest) for way in ((absent,), ("-m", absent))]
        for result in said:
            assert result.returncode == 3 and absent in result.stderr, f"{result.args}: {result.stderr}"
        assert said[0].stderr == said[1].stderr
    assert n >= 8
