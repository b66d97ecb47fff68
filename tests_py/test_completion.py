"""zinc-rt completion: each shell that is here completes the program's own commands, options and values."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from server_process import PROGRAM


def program(*arguments):
    result = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Where the script of each shell lies, by the shell's name."""
    folder = tmp_path_factory.mktemp("completion")
    paths = {}
    for shell in ("bash", "zsh", "fish"):
        paths[shell] = folder / f"_zinc-rt.{shell}"
        paths[shell].write_text(program("completion", shell))
    return paths


def need(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def by_bash(script, words):
    need("bash")
    call = 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _zinc_rt; printf "%s\\n" "${COMPREPLY[@]}"'
    result = subprocess.run(["bash", "-c", call, "bash", script, *words], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    return result.stdout.split()


def by_fish(script, words):
    need("fish")
    call = "source $argv[1]; complete -C $argv[2]"
    home = {**os.environ, "HOME": str(script.parent)}
    result = subprocess.run(
        ["fish", "--no-config", "-c", call, str(script), " ".join(words)],
        capture_output=True,
        text=True,
        timeout=60,
        env=home,
    )
    assert result.stderr == ""
    return [line.split("\t")[0] for line in result.stdout.splitlines()]


def by_zsh(script, words):
    """zsh completes on a terminal alone: the line is typed there, and what was listed is read from the screen."""
    need("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", HOME=str(script.parent), COLUMNS="300", LINES="500", PS1="ready> ")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        # The number is computed: the typed line does not have it, and only what ran prints it.
        os.write(terminal, f"stty cols 300 rows 500; autoload compinit; compinit -u -D; source {script}\n".encode())
        os.write(terminal, b"LISTMAX=0; zstyle ':completion:*' list-prompt ''; unsetopt beep; print set$((40+2))\n")
        read_until(terminal, r"set42[^>]*ready> ")  # before that the terminal, not zsh, answers control characters
        os.write(terminal, " ".join(words).encode() + b"\x04")  # Ctrl-D lists
        os.write(terminal, b"\x15print end$((40+2))\n")
        screen = read_until(terminal, "end42")
        # A line of the list is "NAME  -- help", or several values.
        return [word for shown in screen.splitlines() for word in shown.partition(" -- ")[0].split()]
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal, pattern, seconds=60):
    text, deadline = "", time.monotonic() + seconds
    while not re.search(pattern, text):
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, f"no {pattern!r} in {text!r}"
        text += os.read(terminal, 65536).decode(errors="replace")
    return text


SHELLS = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "wanted", "others"),
    [
        ("zinc-rt ", ["run", "serve", "completion"], ["prefill", "--tier"]),
        ("zinc-rt ser", ["serve"], ["run"]),
        ("zinc-rt run --max-", ["--max-tokens", "--max-context"], ["--tier", "--api-key"]),
        ("zinc-rt ir --stage ", ["prefill", "decode"], ["--lowered"]),
        ("zinc-rt bench --", ["--roofline"], ["--api-key"]),
        ("zinc-rt bench serve --api", ["--api", "--api-key"], ["--roofline"]),
        ("zinc-rt completion ", ["bash", "fish", "zsh"], ["run"]),
    ],
)
def test_completes(scripts, shell, line, wanted, others):
    found = SHELLS[shell](scripts[shell], line.split(" "))
    assert set(wanted) <= set(found)
    assert not set(others) & set(found)


def test_a_value_after_an_equals_sign(scripts):
    assert by_bash(scripts["bash"], ["zinc-rt", "ir", "--stage", "=", "pre"]) == ["prefill"]
    assert by_bash(scripts["bash"], ["zinc-rt", "ir", "--stage", "="]) == ["prefill", "decode"]


def test_names_of_files_are_left_to_the_shell(scripts):
    assert by_bash(scripts["bash"], ["zinc-rt", "info", ""]) == []
    assert by_bash(scripts["bash"], ["zinc-rt", "bench", "--markdown", ""]) == []


def options_of(text):
    """The options at the start of the lines of a help text."""
    return {name for line in text.splitlines() for name in re.findall(r"^\s+(?:-\w,\s*)?(--[\w-]+)", line)}


@pytest.mark.parametrize("command", ["run", "chat", "serve", "bench", "bench serve", "trace", "validate"])
def test_every_option_of_the_help_is_there(scripts, command):
    wanted = options_of(program(*command.split(), "--help"))
    assert len(wanted) > 3
    assert wanted <= set(by_bash(scripts["bash"], ["zinc-rt", *command.split(), "-"]))
    section = program("completion", "man").split(f'.SS "zinc\\-rt {command}', 1)[1].split(".SS ", 1)[0]
    assert wanted <= set(re.findall(r"--[\w-]+", section.replace("\\-", "-")))


def test_the_manual_page_is_well_formed(tmp_path):
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    page = tmp_path / "zinc-rt.1"
    page.write_text(program("completion", "man"))
    wide = {**os.environ, "MANWIDTH": "160"}  # some words are longer than a common line
    shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, timeout=60, env=wide)
    assert shown.returncode == 0 and shown.stderr == ""
    assert "zinc-rt bench serve" in shown.stdout
    assert "  zinc-rt chat model.gguf" in shown.stdout  # of the examples, each on a line of its own
