"""Batches go on where a server ended, however it did: each line has one answer, the one that a direct call has."""

import contextlib
import json
import signal
import sqlite3

import pytest

import tiny_model as tiny
from batch_helpers import batch_now, by_id, chat_body, chats, content, create, ended, text_of, usage_of
from server_process import serving
from server_tenants import KEYS, config

N = 40
KEY = KEYS["alice"]


@pytest.fixture
def arguments(tmp_path):
    """Of a server whose tenants make tokens so slowly that a batch lasts."""
    tiny.write(tmp_path / "tiny.gguf")
    file = config(tmp_path / "zinc.toml", tmp_path / "tiny.gguf", more="decode_tokens_per_s = 20")
    return ("--config", file), {"state": tmp_path / "state.db", "log_path": tmp_path / "log"}


def output_of(folder, batch):
    return folder / "state.db.files" / f"file-{batch['id'].removeprefix('batch_')}-output"


def expect_whole(server, batch):
    now = ended(server, batch, KEY)
    assert now["status"] == "completed", now
    assert now["request_counts"] == {"total": N, "completed": N, "failed": 0}
    output = by_id(content(server, now["output_file_id"], KEY))
    assert set(output) == {str(i) for i in range(N)}
    assert now["usage"] == usage_of(output) and now["usage"]["output_tokens"] > N
    for i in range(0, N, 8):
        code, _, answer = server.request("POST", "/v1/chat/completions", chat_body(i), key=KEY)
        assert code == 200 and text_of(output[str(i)]["response"]["body"]) == text_of(answer)


def some_are_done(server, batch):
    return batch_now(server, batch, KEY)["request_counts"]["completed"] >= 6


def test_a_killed_server_goes_on_behind_the_last_whole_line(arguments, tmp_path):
    places, options = arguments
    with serving(*places, **options) as server:
        batch = create(server, chats(N), KEY)
        other = create(server, chats(3), KEY)  # waits for its turn
        server.wait(lambda: some_are_done(server, batch))
        server.stop(signal.SIGKILL)
    done = output_of(tmp_path, batch).read_bytes()
    assert done.endswith(b"\n") and 6 <= len(by_id(done)) < N
    with output_of(tmp_path, batch).open("ab") as file:
        file.write(b'{"id":"batch_req_0123","custom_id":"39","resp')  # as a kill in the middle of a write leaves it
    stray = tmp_path / "state.db.files" / "file-0123.part"
    stray.write_bytes(b"x")  # of an upload
    with serving(*places, **options) as server:
        assert batch_now(server, batch, KEY)["status"] == "in_progress"
        expect_whole(server, batch)
        assert content(server, batch_now(server, batch, KEY)["output_file_id"], KEY).startswith(done)
        assert ended(server, other, KEY)["request_counts"]["completed"] == 3
        assert not stray.exists()


def test_a_server_that_drains_leaves_the_rest_to_the_next(arguments, tmp_path):
    places, options = arguments
    with serving(*places, **options) as server:
        batch = create(server, chats(N), KEY)
        server.wait(lambda: some_are_done(server, batch))
        assert server.stop() == 0
    done = by_id(output_of(tmp_path, batch).read_bytes())
    assert 6 <= len(done) < N and all(one["response"]["status_code"] == 200 for one in done.values())
    assert {one["response"]["body"]["choices"][0]["finish_reason"] for one in done.values()} == {"length"}
    with serving(*places, **options) as server:
        expect_whole(server, batch)


def test_a_batch_that_was_to_be_cancelled_is(arguments, tmp_path):
    places, options = arguments
    with serving(*places, **options) as server:
        batch = create(server, chats(N), KEY)
        server.wait(lambda: some_are_done(server, batch))
        assert server.stop() == 0
    with serving(*places, **options) as server:
        assert server.request("POST", f"/v1/batches/{batch['id']}/cancel", key=KEY)[0] == 200
        server.stop(signal.SIGKILL)
    with serving(*places, **options) as server:
        now = ended(server, batch, KEY)
        assert now["status"] == "cancelled"
        ids = [*by_id(content(server, now["output_file_id"], KEY)), *by_id(content(server, now["error_file_id"], KEY))]
        assert sorted(ids, key=int) == [str(i) for i in range(N)]


def test_a_batch_that_is_over_its_time_expires(arguments, tmp_path):
    places, options = arguments
    with serving(*places, **options) as server:
        batch = create(server, chats(N), KEY)
        server.wait(lambda: some_are_done(server, batch))
        assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(options["state"])) as state, state:
        [(body,)] = state.execute("SELECT body FROM objects WHERE kind = 'batch'").fetchall()
        body = json.dumps(json.loads(body) | {"expires_at": 1})
        state.execute("UPDATE objects SET body = ? WHERE kind = 'batch'", (body,))
    with serving(*places, **options) as server:
        now = ended(server, batch, KEY)
        assert now["status"] == "expired" and now["expired_at"] and not now["completed_at"]
        output = by_id(content(server, now["output_file_id"], KEY))
        rest = by_id(content(server, now["error_file_id"], KEY))
        assert len(output) >= 6 and sorted([*output, *rest], key=int) == [str(i) for i in range(N)]
        assert {one["error"]["code"] for one in rest.values()} == {"batch_expired"}
        assert now["request_counts"] == {"total": N, "completed": len(output), "failed": len(rest)}


def test_output_that_is_not_the_batchs_is_not_gone_on_with(arguments, tmp_path):
    places, options = arguments
    with serving(*places, **options) as server:
        batch = create(server, chats(N), KEY)
        server.wait(lambda: some_are_done(server, batch))
        server.stop(signal.SIGKILL)
    path = output_of(tmp_path, batch)
    first, *rest = path.read_text().splitlines()
    forged = json.loads(first) | {"custom_id": "of another"}
    path.write_text("\n".join([json.dumps(forged, separators=(",", ":")), *rest]) + "\n")
    with serving(*places, **options) as server:
        now = ended(server, batch, KEY)
        assert now["status"] == "failed" and "another batch's" in now["errors"]["data"][0]["message"]
