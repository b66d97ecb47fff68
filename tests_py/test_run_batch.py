"""zinc-rt run-batch: a batch from a file to a file, without a server."""

import json
import signal
import subprocess
import time

import pytest

from batch_helpers import by_id, chat_body, chats, line, text_of
from server_process import PROGRAM, serving

N = 30


def run_batch(*arguments):
    return subprocess.run([*PROGRAM, "run-batch", *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(chats(N))
    return path


def test_it_answers_each_line_as_a_server_does(tiny_model, tmp_path, lines):
    text = {"prompt": [5, 6], "max_tokens": 4, "seed": 2, "return_logits_hash": True}
    with lines.open("a") as file:
        file.write(line("text", text, "/v1/completions") + "\n")
        file.write(line("response", {"input": "a", "max_output_tokens": 4, "seed": 2}, "/v1/responses") + "\n")
    out = tmp_path / "out.jsonl"
    result = run_batch(tiny_model, lines, out, "--id", "tiny", "--max-slots", 4)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{N + 2} lines: {N + 2} answered, in {out}\n"
    output = by_id(out.read_bytes())
    assert set(output) == {*map(str, range(N)), "text", "response"}
    assert not (tmp_path / "out.errors.jsonl").exists()
    with serving(tiny_model, "--id", "tiny", "--max-slots", 4) as server:
        for i in range(0, N, 5):
            answer = server.request("POST", "/v1/chat/completions", chat_body(i))[2]
            assert text_of(output[str(i)]["response"]["body"]) == text_of(answer)
        answer = server.request("POST", "/v1/completions", text)[2]
        assert output["text"]["response"]["body"]["choices"] == answer["choices"]
        assert len(answer["choices"][0]["logits_hash"]) == answer["usage"]["completion_tokens"]


def test_embeddings_too(tiny_model, tmp_path):
    out, lines = tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    lines.write_text("".join(line(str(i), {"input": [5, 6, 7 + i]}, "/v1/embeddings") + "\n" for i in range(3)))
    result = run_batch(tiny_model, lines, out, "--pooling", "mean")
    assert result.returncode == 0, result.stdout + result.stderr
    output = by_id(out.read_bytes())
    with serving(tiny_model, "--pooling", "mean") as server:
        for i in range(3):
            answer = server.request("POST", "/v1/embeddings", {"input": [5, 6, 7 + i]})[2]
            assert output[str(i)]["response"]["body"]["data"] == answer["data"]


def test_lines_that_fail_are_told_and_can_be_tried_again(tiny_model, tmp_path, lines):
    with lines.open("a") as file:
        file.write(line("bad", chat_body(1, max_tokens=-1)) + "\n")
    out, errors = tmp_path / "out.jsonl", tmp_path / "failed.jsonl"
    arguments = (tiny_model, lines, out, "--id", "tiny", "--errors", errors)
    result = run_batch(*arguments)
    assert result.returncode == 1
    assert result.stdout == f"{N + 1} lines: {N} answered, in {out}; 1 failed, in {errors}\n"
    [failed] = by_id(errors.read_bytes()).values()
    assert failed["response"]["status_code"] == 400 and failed["custom_id"] == "bad"
    again = run_batch(*arguments)
    assert again.returncode == 1 and f"; {N + 1} of them by an earlier run\n" in again.stdout
    errors.unlink()
    before = out.read_bytes()
    again = run_batch(*arguments)
    assert again.returncode == 1 and f"; {N} of them by an earlier run\n" in again.stdout
    assert out.read_bytes() == before and len(by_id(errors.read_bytes())) == 1


def test_a_killed_run_goes_on(tiny_model, tmp_path, lines):
    lines.write_bytes(chats(200, max_tokens=100))
    out = tmp_path / "out.jsonl"
    command = [*PROGRAM, "run-batch", str(tiny_model), str(lines), str(out), "--id", "tiny", "--max-slots", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not out.exists() or out.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    done = out.read_bytes()
    n_done = done.count(b"\n")
    assert 3 <= n_done < 200
    with out.open("ab") as file:
        file.write(b'{"id":"batch_')
    result = run_batch(*command[len(PROGRAM) + 1 :])
    assert result.returncode == 0, result.stderr
    assert f"; {n_done} of them by an earlier run\n" in result.stdout
    whole = out.read_bytes()
    assert whole.startswith(done[: done.rindex(b"\n") + 1]) and set(by_id(whole)) == {str(i) for i in range(200)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: [json]"),
        (line("a", {}) + "\n" + line("a", {}), "is that of line 1 too"),
        (line("a", {}, "/v1/files"), '"/v1/files" is given, one of /v1/chat/completions, '),
        ("", "the file has no line"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_is_made(tiny_model, tmp_path, text, words):
    (tmp_path / "in.jsonl").write_text(text)
    result = run_batch(tiny_model, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert result.returncode == 3 and words in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_that_is_something_else_is_left_alone(tiny_model, tmp_path, lines):
    out = tmp_path / "notes"
    for text in ("my notes", "my notes\n", json.dumps({"custom_id": "x", "response": None, "error": {}}) + "\n"):
        out.write_text(text)
        result = run_batch(tiny_model, lines, out)
        assert result.returncode == 3 and "name" in result.stderr, result.stderr
        assert out.read_text() == text
    result = run_batch(tiny_model, lines, lines)
    assert result.returncode == 3 and "are not three files" in result.stderr
    assert lines.read_bytes() == chats(N)
