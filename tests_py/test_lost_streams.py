"""Standard error and standard output that take nothing: no message ends a process, and a lost result is an error."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import urllib.request

import pytest

from server_process import PROGRAM

READER_GONE = 141  # as a shell says it of what SIGPIPE ended


@contextlib.contextmanager
def closed():
    yield None


@contextlib.contextmanager
def full_disk():
    with open("/dev/full", "wb") as full:
        yield full.fileno()


@contextlib.contextmanager
def reader_gone():
    out, into = os.pipe()
    os.close(out)
    yield into
    os.close(into)


@contextlib.contextmanager
def reader_asleep():
    """A pipe that is full, with a reader that reads nothing."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(into, b" " * 4096)
    os.set_blocking(into, True)
    yield into
    os.close(into)
    os.close(out)


LOST = [closed, full_disk, reader_gone]


def start(words, *, fd, lost, **options):
    """The program with stdout (1) or stderr (2) as `lost` makes it; a descriptor of None is a closed one."""
    other = {"stdout": subprocess.PIPE} if fd == 2 else {"stderr": subprocess.PIPE}
    if lost is None:
        words = ["sh", "-c", f'exec "$@" {fd}>&-', "sh", *PROGRAM, *words]
    else:
        words = [*PROGRAM, *words]
        other["stderr" if fd == 2 else "stdout"] = lost
    options.setdefault("stdin", subprocess.PIPE)
    return subprocess.Popen(list(map(str, words)), text=True, **other, **options)


def run(words, *, fd, lost, stdin="", env=None):
    with start(words, fd=fd, lost=lost, env={**os.environ, **(env or {})}) as process:
        said = process.communicate(stdin, timeout=120)[fd == 1]
    return process.returncode, said


# A command, its exit code, and whether it prints a result. $M: a model; $D: a folder; $Q: a file of requests.
COMMANDS = [
    (["run", "$M", "-p", "a", "-n", "2", "--progress"], 0, True),
    (["run", "$M", "-p", "a", "-n", "2", "--json"], 0, True),
    (["run", "$D/absent.gguf", "-p", "a"], 3, False),
    (["chat", "$M", "-n", "2", "--progress"], 0, True),
    (["run-batch", "$M", "$Q", "$D/answers.jsonl"], 0, False),
    (["serve", "$D/absent.gguf"], 3, False),
    (["serve", "--example-config"], 0, True),
    (["key"], 0, True),
    (["models"], 0, True),
    (["models", "--catalogue"], 0, True),
    (["pull", "http://127.0.0.1:9/absent.gguf"], 1, False),
    (["alias", "x", "absent"], 3, False),
    (["rm", "absent"], 3, False),
    (["info", "$M"], 0, True),
    (["plan", "$M"], 0, True),
    (["ir", "$M"], 0, True),
    (["tokenize", "$M", "a"], 0, True),
    (["convert", "$M", "$D/converted.gguf", "--progress"], 0, True),
    (["validate", "$M", "--tiers", "t_cpu,t_cpu", "--prompt", "a"], 0, True),
    (["validate", "$M", "--tiers", "t_cpu"], 2, False),
    (["bench", "$M", "--only", "decode", "--gen", "1", "--prompt", "1", "--reps", "1", "--progress"], 0, True),
    (["bench", "serve", "--url", "http://127.0.0.1:9", "--requests", "1", "--progress"], 1, False),
    (["trace", "$M", "--out", "$D/trace.json"], 0, True),
    (["sched-test", "--steps", "1000", "--progress"], 0, True),
    (["asm", "$D/absent.zrt"], 3, False),
    (["replay", "$D/absent.log"], 3, False),
    (["tiers"], 0, True),
    (["completion", "bash"], 0, True),
    (["completion", "man"], 0, True),
    (["--help"], 0, True),
    (["--version"], 0, True),
    (["fly"], 2, False),
    (["run", "--nonsense"], 2, False),
]
RESULTS = [words for words, code, has_result in COMMANDS if code == 0 and has_result]


@pytest.fixture
def filled(tiny_model, tmp_path):
    """A function that puts the names of files into a command."""
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
    requests = tmp_path / "requests.jsonl"
    line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}
    requests.write_text(json.dumps(line) + "\n")
    names = {"$M": str(tiny_model), "$D": str(tmp_path), "$Q": str(requests)}

    def fill(words):
        for name, path in names.items():
            words = [word.replace(name, path) for word in words]
        return words

    return fill


def name_of(value):
    return " ".join(value) if isinstance(value, list) else None


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize(("words", "code", "has_result"), COMMANDS, ids=name_of)
def test_a_lost_message_changes_nothing(filled, tmp_path, words, code, has_result, lost):
    with lost() as stderr:
        found, out = run(filled(words), fd=2, lost=stderr, stdin="a\n", env={"ZINC_RT_MODELS": str(tmp_path)})
    assert found == code
    assert not has_result or out


@pytest.mark.parametrize("words", RESULTS, ids=name_of)
@pytest.mark.parametrize(("lost", "why"), [(closed, "Bad file descriptor"), (full_disk, "No space left on device")])
def test_a_lost_result_is_an_error(filled, tmp_path, words, lost, why):
    with lost() as stdout:
        found, said = run(filled(words), fd=1, lost=stdout, stdin="a\n", env={"ZINC_RT_MODELS": str(tmp_path)})
    assert found == 1
    assert f"zinc-rt: cannot write to standard output: {why}\n" in said


@pytest.mark.parametrize("words", RESULTS, ids=name_of)
def test_a_reader_that_had_enough_is_no_error(filled, tmp_path, words):
    with reader_gone() as stdout:
        found, said = run(filled(words), fd=1, lost=stdout, stdin="a\n", env={"ZINC_RT_MODELS": str(tmp_path)})
    assert found == READER_GONE
    assert "zinc-rt:" not in said and "terminate" not in said
    assert " generated, " not in said  # the answer was not computed to its end


@pytest.mark.parametrize("lost", [*LOST, reader_asleep])
@pytest.mark.parametrize("level", ["warn", "trace"])
def test_a_drain_goes_on_without_its_messages(tiny_model, lost, level):
    """An answer that has begun when the server is told to end comes to its end, and so does the server."""
    with lost() as stderr:
        process = start(
            ["serve", tiny_model, "--port", "0", "--state", "none"],
            fd=2, lost=stderr, env={**os.environ, "ZINC_RT_LOG": level},
        )  # fmt: skip
        url = process.stdout.readline().split()[0]
        body = {"model": "tiny", "prompt": "a", "max_tokens": 60, "ignore_eos": True, "stream": True}
        request = urllib.request.Request(
            f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.readline()
            process.send_signal(signal.SIGTERM)
            assert answer.read().endswith(b"data: [DONE]\n\n")
        assert process.wait(60) == 0
        process.communicate()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("lost", LOST)
def test_a_server_needs_no_reader_of_its_address(tiny_model, lost):
    """Its first line is a message: where that is lost, the server answers, and its end is a good one."""
    port = free_port()
    with lost() as stdout:
        process = start(["serve", tiny_model, "--port", port, "--state", "none"], fd=1, lost=stdout)
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
