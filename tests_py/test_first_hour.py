"""The first hour of a developer, a researcher and a server's owner: what they type and see (first_hour.py)."""

import ast
import asyncio
import os
import pickle
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import pytest

import zinc_rt
from first_hour import CHAT, HELLO, PYTHON, SERVER, SERVER_WITH_KEY, SHELL
from fixture_models import OWN
from server_process import PROGRAM, serving

# What no user is to see: a program's insides, and what a terminal alone understands.
NOISE = re.compile(r"Traceback|pybind|incompatible (func|constr)|Unable to cast|terminate called|std::|\r|\x1b")


def test_the_table_has_what_was_promised():
    assert len(SHELL) + len(PYTHON) + len(SERVER) + len(SERVER_WITH_KEY) >= 60


@pytest.fixture(scope="module")
def places(tiny_model, tmp_path_factory):
    """The variables of the command lines."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "other.gguf").write_bytes(tiny_model.read_bytes().replace(b"llama", b"lemma"))
    (folder / "random.gguf").write_bytes(bytes(range(7, 256)) * 400)
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, command in (("zinc-rt", PROGRAM), ("python", [sys.executable])):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (bin_folder / name).chmod(0o755)
    return {
        "M": str(tiny_model),
        "PLAIN": str(OWN / "models" / "tiny_llama-f32.gguf"),
        "OTHER": str(folder / "other.gguf"),
        "RANDOM": str(folder / "random.gguf"),
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }


def expect(text, words):
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    assert not (found := NOISE.search(text)), f"{found[0]!r} is in {text!r}"


@pytest.mark.parametrize("row", SHELL, ids=lambda row: row.line)
def test_a_command_line(row, places, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    env |= places | {"ZINC_RT_MODELS": str(tmp_path / "models"), "HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-c", row.line], capture_output=True, stdin=subprocess.DEVNULL, timeout=120, env=env,
                          cwd=tmp_path)  # fmt: skip
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    assert done.returncode == row.code, out + err
    expect(out, row.out)
    expect(err, row.err)
    assert row.code == 0 or row.out or out == ""  # what went wrong is on stderr alone


@pytest.fixture
def names(tiny_engine, tiny_model, places):
    return {
        "asyncio": asyncio,
        "pickle": pickle,
        "zinc_rt": zinc_rt,
        "engine": tiny_engine,
        "session": tiny_engine.tenant("first").session(),
        "model": tiny_model,
        "random": places["RANDOM"],
    }


@pytest.mark.parametrize("row", PYTHON, ids=lambda row: row.source)
def test_lines_of_python(row, names):
    def run():
        tree = ast.parse(row.source)
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "lines", "exec"), names)
        return repr(eval(compile(last, "lines", "eval"), names) if last else None)

    if row.error is None:
        expect(run(), row.words)
        return
    # An error is of ours, and only pickle's are Python's alone.
    with pytest.raises(getattr(zinc_rt.errors, row.error, TypeError)) as raised:
        run()
    assert row.error == "TypeError" or type(raised.value).__name__ == row.error
    expect(str(raised.value), row.words)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's own, about threads and fork
def test_a_fork(places):
    lines = f"""
import os, zinc_rt
engine = zinc_rt.Engine({places["M"]!r})
if os.fork() == 0:
    try:
        engine.generate("hi")
    except zinc_rt.errors.Unavailable as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(engine.generate("hi", max_tokens=2))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", lines], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    expect(done.stdout, ("forked", "Completion("))


@pytest.fixture(scope="module")
def servers(tiny_model, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "log"
    with serving(tiny_model, log_path=log) as plain, serving(tiny_model, "--api-key", "secret", "--tolerant") as keyed:
        plain.path = log
        yield {False: plain, True: keyed}


@pytest.mark.parametrize(
    ("with_key", "row"),
    [(False, row) for row in SERVER] + [(True, row) for row in SERVER_WITH_KEY],
    ids=lambda value: f"{value.method} {value.path} {value.body}" if hasattr(value, "body") else f"key={value}",
)
def test_a_request(servers, with_key, row):
    status, _, body = servers[with_key].request(row.method, row.path, row.body, row.key, row.headers)
    text = body.decode() if isinstance(body, bytes) else repr(body)
    assert status == row.status, text
    expect(text, row.words)


def test_a_request_is_a_line_of_the_log(servers):
    server = servers[False]
    assert server.request("POST", CHAT, HELLO, headers={"x-request-id": "mine"})[0] == 200
    server.wait(lambda: "request_id=mine" in server.path.read_text())
    (line,) = [line for line in server.path.read_text().splitlines() if "request_id=mine" in line]
    expect(line, (f"POST {CHAT} 200", "prompt_tokens=21"))
    expect(server.path.read_text(), ())


@pytest.mark.parametrize("program", [PROGRAM, [sys.executable, "-m", "zinc_rt"]], ids=["program", "package"])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_to_end_says_that_it_drains(tiny_model, tmp_path, monkeypatch, program, by):
    """In the package's process threads of numpy are, which block no signals: one of them may be given it."""
    monkeypatch.setattr("server_process.PROGRAM", program)
    for i in range(3):
        with serving(tiny_model, log_path=tmp_path / str(i)) as server:
            assert server.stop(by) == 0
        expect((tmp_path / str(i)).read_text(), ("draining", "a second signal ends at once"))


class Terminal:
    """A program on a terminal of its own; whoever types waits for what it shows."""

    def __init__(self, *command):
        self.shown = ""
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm")
            os.execvp(command[0], command)

    def type(self, text):
        os.write(self._end, text.encode())

    def wait_for(self, pattern, seconds=60):
        """What it showed until then, which is not looked at again."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.shown)):
            ready, _, _ = select.select([self._end], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {pattern!r} in {self.shown!r}"
            self.shown += os.read(self._end, 1 << 16).decode(errors="replace")
        before, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return before

    def close(self):
        """Its exit code; one that does not end by itself is killed."""
        end = time.monotonic() + 30
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0] and time.monotonic() < end:
            time.sleep(0.02)
        if not ended[0]:
            os.kill(self.pid, signal.SIGKILL)
            ended = os.waitpid(self.pid, 0)
        os.close(self._end)
        return os.waitstatus_to_exitcode(ended[1])


READY = re.escape("\x1b[?2004h") + "> "  # it asks the terminal to mark what is pasted


def test_what_is_pasted_is_one_turn(tiny_model):
    pasted = "one\ntwo\n/exit\nthree"
    with zinc_rt.Engine(tiny_model) as engine:
        wanted = engine.chat([{"role": "user", "content": pasted + " four"}], max_tokens=3, ignore_eos=True)
    terminal = Terminal(*PROGRAM, "chat", str(tiny_model), "-n", "3", "--temperature", "0")
    try:
        terminal.wait_for(READY)
        terminal.type("\x1b[200~" + pasted.replace("\n", "\r") + "\x1b[201~")  # terminals send a break as \r
        terminal.wait_for("one\r\ntwo\r\n/exit\r\nthree")
        terminal.type(" four\r")
        turn = terminal.wait_for(READY)
        context = wanted.usage.prompt_tokens + wanted.usage.completion_tokens
        assert f"context {context} of 512" in turn and turn.count("[3 tokens") == 1
        terminal.type("/exit\r")
        terminal.wait_for("\x1b\\[\\?2004l")
    finally:
        code = terminal.close()
    assert code == 0
