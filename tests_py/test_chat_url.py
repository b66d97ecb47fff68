"""zinc-rt chat --url: a conversation over HTTP."""

import os
import pty
import select
import signal
import subprocess
import termios
import time

import pytest

import zinc_rt
from other_server import other_server
from server_process import PROGRAM, serving


def chat(url, *arguments, stdin="", timeout=60):
    return subprocess.run(
        [*PROGRAM, "chat", "--url", url, *map(str, arguments)],
        input=stdin, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--api-key", "k", "--admin-key", "a") as server:
        yield server


def test_it_is_the_same_conversation_as_with_a_file(server, tiny_model):
    result = chat(
        server.url,
        "--api-key",
        "k",
        "--model",
        "tiny",
        "--system",
        "be short",
        "--temperature",
        0,
        "-n",
        3,
        stdin="one\ntwo\n/reset\n/exit\n",
    )
    assert result.returncode == 0, result.stderr
    with zinc_rt.Engine(tiny_model) as engine:
        session = engine.tenant("t").session(system="be short")
        history, wanted = [], ""
        for line in ("one", "two"):
            history.append({"role": "user", "content": line})
            text = session.generate(messages=history, max_tokens=3).text
            history.append({"role": "assistant", "content": text})
            wanted += text + "\n"
    assert result.stdout == wanted


def test_errors_are_the_servers_words_and_end_a_turn_alone(server):
    result = chat(server.url, "--api-key", "k", "--temperature", 0, "-n", 3, stdin="x" * 3000 + "\nhello\n")
    assert result.returncode == 0
    assert "context" in result.stderr and result.stdout.count("\n") == 1
    refused = chat(server.url, "--api-key", "wrong", stdin="hello\n")
    _, _, words = server.request("GET", "/v1/models", key="wrong")
    assert refused.returncode == 1 and words["error"]["message"] in refused.stderr
    nobody = chat("http://127.0.0.1:1", stdin="hello\n")
    assert nobody.returncode == 1 and "127.0.0.1:1" in nobody.stderr


def test_ctrl_c_stops_the_answer_and_not_the_chat():
    with other_server(n_events=100_000) as server:
        process = subprocess.Popen(
            [*PROGRAM, "chat", "--url", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        said = []
        for line in ("first", "second"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            said.append(process.stdout.read(40))
            process.send_signal(signal.SIGINT)
            said[-1] += process.stdout.readline()
        process.stdin.close()
        process.stdout.close()
        assert process.wait(30) == 0
    assert all(set(text.split()) == {"two", "words"} for text in said)
    first, second = server.bodies
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == said[0].removesuffix("\n")
    assert first["messages"] == second["messages"][:1]


def read_until(terminal, end):
    got = b""
    while not got.endswith(end):
        got += os.read(terminal, 4096)


def wait_for_prompt(terminal):
    read_until(terminal, b"> ")
    while termios.tcgetattr(terminal)[3] & termios.ICANON:  # what comes before is the kernel's to edit
        time.sleep(0.01)


def test_a_terminal_takes_utf8_in_every_locale_and_ctrl_c_drops_a_line():
    ours, theirs = pty.openpty()
    with other_server() as server:
        process = subprocess.Popen(
            [*PROGRAM, "chat", "--url", server.url], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "LC_ALL": "C", "TERM": "dumb"}, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        wait_for_prompt(ours)
        os.write(ours, b"dropped")
        read_until(ours, b"dropped")
        process.send_signal(signal.SIGINT)
        while not select.select([ours], [], [], 1)[0]:  # it came before the wait for input
            process.send_signal(signal.SIGINT)
        wait_for_prompt(ours)
        os.write(ours, "größe\n".encode())
        wait_for_prompt(ours)
        os.write(ours, b"\x04")
        assert process.wait(30) == 0
        os.close(ours)
    assert [body["messages"] for body in server.bodies] == [[{"role": "user", "content": "größe"}]]


@pytest.mark.parametrize(
    "arguments", [[], ["--api-key", "k", "model.gguf"], ["model.gguf", "--url", "http://a"], ["--model", "tiny"]]
)
def test_bad_usage_is_2(arguments):
    assert subprocess.run([*PROGRAM, "chat", *arguments], capture_output=True, timeout=60).returncode == 2


def test_a_url_that_is_none_is_refused():
    result = chat("localhost:8080")
    assert result.returncode == 3 and "http://" in result.stderr
