"""The ledger and the tenants that outlive a server: kills, SIGTERM, files that are lost."""

import contextlib
import http.client
import json
import random
import signal
import sqlite3
import threading
import time

import pytest

from server_process import serving
from server_tenants import ADMIN, ask, config, hashed, usage


def test_keys_of_an_older_state_file_are_good(tiny_model, tmp_path):
    state, file = tmp_path / "state.db", config(tmp_path / "zinc.toml", tiny_model)
    with sqlite3.connect(state) as db:
        db.execute("CREATE TABLE tenants (name TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID")
        db.execute("CREATE TABLE keys (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL) WITHOUT ROWID")
        db.execute("INSERT INTO tenants VALUES ('carol', '{}')")
        db.execute("INSERT INTO keys VALUES (?, 'carol')", (hashed("old")[7:],))
        db.execute("PRAGMA user_version = 1")
    with serving("--config", file, state=state) as server:
        assert ask(server, "old")[0] == 200
        [old] = server.request("GET", "/v1/tenants/carol/keys", key=ADMIN)[2]["data"]
        assert old["created"] is None and not old["configured"]
        assert server.request("POST", "/v1/tenants/carol/keys", {}, key=ADMIN)[0] == 201
        assert server.request("DELETE", f"/v1/tenants/carol/keys/{old['hash']}", key=ADMIN)[0] == 200
        assert ask(server, "old")[0] == 401


def test_what_was_made_outlives_a_kill(tiny_model, tmp_path):
    state, file = tmp_path / "state.db", config(tmp_path / "zinc.toml", tiny_model)
    with serving("--config", file, state=state) as server:
        key = server.request("POST", "/v1/tenants", {"id": "carol", "weight": 3}, key=ADMIN)[2]["api_key"]
        assert ask(server, key)[0] == 200
        server.stop(signal.SIGKILL)
    with serving("--config", file, state=state) as server:
        assert ask(server, key)[0] == 200
        assert usage(server, "carol")["requests"] == 2
        assert server.request("GET", "/v1/tenants/carol", key=ADMIN)[2]["settings"]["weight"] == 3


def last_event(answer):
    """The event of a stream that has its usage; None where the stream was cut off before it."""
    events = [json.loads(e[6:]) for e in answer.decode().split("\n\n") if e.startswith("data: {")]
    return next((e for e in events if e.get("usage")), None)


def kill_somewhere(model, folder, seed):
    """Kills a server under load; each answer that a client had must be in the ledger, to the token."""
    rng = random.Random(seed)
    state = folder / f"state{seed}.db"
    had, over = [], threading.Event()
    with serving(model, "--max-slots", 8, state=state) as server:

        def work(i):
            while not over.is_set():
                try:
                    stream = i % 2 == 0
                    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
                    code, _, answer = ask(server, None, 1 + i % 7, n=1 + i % 2, **more)
                except OSError:
                    return
                except Exception:  # cut off in the middle of an answer
                    if server.process.poll() is not None or over.is_set():
                        return
                    raise
                if code != 200:
                    continue
                if stream:
                    answer = last_event(answer)
                    if answer is None:
                        continue
                had.append((answer["id"], answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for worker in workers:
            worker.start()
        time.sleep(rng.uniform(0.05, 0.6))
        server.process.kill()
        over.set()
        for worker in workers:
            worker.join(20)
    with sqlite3.connect(state) as db:
        rows = {row[0]: row[1:] for row in db.execute("SELECT id, prompt_tokens, completion_tokens FROM requests")}
        sums = db.execute("SELECT SUM(requests), SUM(prompt_tokens), SUM(completion_tokens) FROM totals").fetchone()
    for key, *tokens in had:
        assert list(rows.get(key, ())) == tokens, key
    if rows:
        assert sums == (len(rows), sum(r[0] for r in rows.values()), sum(r[1] for r in rows.values()))
    return len(had)


def test_a_kill_loses_no_answered_token(tiny_model, tmp_path):
    assert sum(kill_somewhere(tiny_model, tmp_path, seed) for seed in range(4)) > 0


@pytest.mark.slow
def test_a_kill_at_100_moments_loses_no_answered_token(tiny_model, tmp_path):
    assert sum(kill_somewhere(tiny_model, tmp_path, seed) for seed in range(100, 200)) > 100


def end_somewhere(model, folder, seed):
    """SIGTERM under load: each answer that has begun is finished, and the ledger is the sum of them."""
    rng = random.Random(seed)
    state = folder / f"state{seed}.db"
    had, cut, over = [], [], threading.Event()
    with serving(model, "--max-slots", 4, state=state) as server:

        def work(i):
            while not over.is_set():
                stream = i % 2 == 0
                more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
                try:
                    code, _, answer = ask(server, None, 5 + i * 7, **more)
                except http.client.IncompleteRead:
                    cut.append(i)
                    return
                except (OSError, http.client.HTTPException):  # before any of an answer came
                    return
                if code == 503:
                    return
                assert code == 200
                if stream:
                    if b"data: [DONE]" not in answer:
                        cut.append(i)
                        return
                    answer = last_event(answer)
                had.append((answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        time.sleep(rng.uniform(0.05, 0.6))
        code = server.stop()
        over.set()
        for worker in workers:
            worker.join(30)
    assert code == 0 and not cut
    with sqlite3.connect(state) as db:
        sums = db.execute("SELECT SUM(requests), SUM(prompt_tokens), SUM(completion_tokens) FROM totals").fetchone()
    assert [n or 0 for n in sums] == [len(had), sum(p for p, _ in had), sum(c for _, c in had)]
    return len(had)


def test_sigterm_cuts_no_answer_off(tiny_model, tmp_path):
    assert sum(end_somewhere(tiny_model, tmp_path, seed) for seed in range(4)) > 0


@pytest.mark.slow
def test_sigterm_at_100_moments_cuts_no_answer_off(tiny_model, tmp_path):
    assert sum(end_somewhere(tiny_model, tmp_path, seed) for seed in range(100, 200)) > 100


def test_rows_that_cannot_be_written_at_the_end_are_logged_and_an_error(tiny_model, tmp_path):
    state, log = tmp_path / "state.db", tmp_path / "log"
    with serving(tiny_model, state=state, log_path=log) as server:
        holder = sqlite3.connect(state, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        code, _, answer = server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})
        assert code == 200
        code, _, ready = server.request("GET", "/readyz")
        assert code == 503 and "ledger" in json.dumps(ready)
        assert server.stop() == 1
        holder.close()
    assert "1 requests are missing in the ledger" in log.read_text() and answer["id"] in log.read_text()


def test_a_state_file_that_is_removed_comes_back_whole(tiny_model, tmp_path):
    state = tmp_path / "state.db"
    with serving(tiny_model, state=state) as server:
        for _ in range(2):
            assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200
            state.unlink()
            server.wait(state.exists)
        assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200
        assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(state)) as db:
        assert db.execute("SELECT SUM(requests) FROM totals").fetchone() == (3,)
