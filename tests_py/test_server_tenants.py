"""Keys, quotas and the ledger of the server."""

import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import pathlib
import random
import re
import signal
import sqlite3
import threading
import time

import pytest

from server_process import serving

KEYS = {"alice": "key-of-alice", "bob": "key-of-bob", "gate": "key-of-the-gate"}
ADMIN = "key-of-the-admin"


def hashed(key):
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def config(path, model, more="", extra_tenants=""):
    tenants = "".join(
        f'[[tenants]]\nname = "{name}"\nkeys = ["{hashed(key)}"]\n{"proxy = true" if name == "gate" else ""}\n{more}\n'
        for name, key in KEYS.items()
    )
    path.write_text(
        f'admin_keys = ["{hashed(ADMIN)}"]\n[[models]]\npath = "{model}"\nid = "tiny"\nmax_slots = 8\n'
        f"{tenants}{extra_tenants}"
    )
    return path


@pytest.fixture(scope="module")
def server(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving("--config", config(folder / "zinc.toml", tiny_model), state=folder / "state.db") as server:
        server.config = folder / "zinc.toml"
        yield server


def ask(server, key, n_tokens=4, **more):
    body = {"prompt": [5, 6, 7, 8], "max_tokens": n_tokens, "ignore_eos": True, **more}
    headers = body.pop("headers", None)
    return server.request("POST", "/v1/completions", body, key=key, headers=headers)


def usage(server, tenant):
    return server.request("GET", f"/v1/tenants/{tenant}/usage", key=ADMIN)[2]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/tenants", "/v1/tenants/alice/usage", "/metrics"])
def test_without_a_key_nothing_is_told(server, path):
    for key in (None, "wrong", KEYS["alice"] + "x", ""):
        code, headers, answer = server.request("GET", path, key=key)
        assert code == 401 and answer["error"]["code"] == "invalid_api_key"
        assert headers["WWW-Authenticate"] == "Bearer"
    assert server.request("GET", "/health")[0] == 200


def test_a_tenant_sees_itself_alone(server):
    assert server.request("GET", "/v1/tenants/alice/usage", key=KEYS["alice"])[0] == 200
    assert server.request("GET", "/v1/tenants/me", key=KEYS["alice"])[2]["id"] == "alice"
    for method, path in [
        ("GET", "/v1/tenants/bob"),
        ("GET", "/v1/tenants"),
        ("GET", "/metrics"),
        ("PATCH", "/v1/tenants/alice"),
    ]:
        assert server.request(method, path, {} if method == "PATCH" else None, key=KEYS["alice"])[0] == 403
    assert {t["id"] for t in server.request("GET", "/v1/tenants", key=ADMIN)[2]["data"]} >= set(KEYS)


def test_an_admins_key_generates_nothing(server):
    assert ask(server, ADMIN)[0] == 403


def test_usage_is_the_sum_of_the_answers(server):
    before = usage(server, "bob")
    total = {"prompt_tokens": 0, "completion_tokens": 0}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for code, _, answer in pool.map(lambda i: ask(server, KEYS["bob"], 1 + i % 5, n=1 + i % 3, seed=i), range(24)):
            assert code == 200
            for name in total:
                total[name] += answer["usage"][name]
    after = usage(server, "bob")
    assert after["requests"] == before["requests"] + 24
    for name, value in total.items():
        assert after[name] - before[name] == value


def test_prefixes_are_not_shared_between_tenants(server):
    prompt = [random.randrange(5, 250) for _ in range(100)]
    cached = [
        ask(server, KEYS[name], prompt=prompt, **more)[2]["usage"]["prompt_tokens_details"]["cached_tokens"]
        for name, more in [
            ("alice", {}),
            ("bob", {}),
            ("alice", {}),
            ("alice", {"cache_salt": "a"}),
            ("alice", {"cache_salt": "a"}),
        ]
    ]
    assert cached[0] == cached[1] == cached[3] == 0 and cached[2] > 0 and cached[4] > 0


def test_a_tenant_is_made_changed_and_removed(server):
    code, _, made = server.request("POST", "/v1/tenants", {"id": "carol", "qos_class": "batch", "weight": 2}, key=ADMIN)
    assert code == 201 and made["settings"]["qos_class"] == "batch"
    key = made["api_key"]
    assert ask(server, key)[0] == 200
    assert server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)[0] == 409
    code, _, answer = server.request("PATCH", "/v1/tenants/carol", {"weight": -1}, key=ADMIN)
    assert code == 400 and answer["error"]["param"] == "weight"
    assert server.request("PATCH", "/v1/tenants/carol", {"max_context_tokens": 6}, key=ADMIN)[0] == 200
    assert ask(server, key, prompt=[5] * 10)[0] == 400
    second = server.request("POST", "/v1/tenants/carol/keys", {}, key=ADMIN)[2]["api_key"]
    assert ask(server, second, 1)[0] == 200
    assert server.request("DELETE", "/v1/tenants/carol", key=ADMIN)[0] == 200
    assert ask(server, key)[0] == ask(server, second)[0] == 401
    assert server.request("DELETE", "/v1/tenants/alice", key=ADMIN)[0] == 409


@pytest.mark.parametrize("name", ["me", ".", "..", "", "a b", "a\nb", "a/b", "x" * 129])
def test_a_name_that_is_no_path_is_refused(server, name):
    code, _, answer = server.request("POST", "/v1/tenants", {"id": name}, key=ADMIN)
    assert code == 400 and answer["error"]["param"] == "id"


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}"])
def test_the_word_before_a_key_is_of_any_case(server, form):
    headers = {"Authorization": form.format(KEYS["alice"])}
    assert server.request("GET", "/v1/tenants/me", headers=headers)[2]["id"] == "alice"


def test_a_key_may_come_as_other_clients_send_it_but_not_two(server):
    def who(**headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        code, _, answer = server.request("GET", "/v1/tenants/me", headers=headers)
        return answer["id"] if code == 200 else code

    alice, bob = KEYS["alice"], KEYS["bob"]
    assert who(api_key=alice) == who(x_api_key=alice) == who(Authorization="Basic eA==", api_key=alice) == "alice"
    assert who(Authorization=f"Bearer {alice}", api_key=alice) == "alice"
    assert who(Authorization=f"Bearer {alice}", api_key=bob) == who(api_key=alice, x_api_key=bob) == 400
    assert who(Authorization="Bearer") == who(Authorization="Basic eA==") == who(api_key="x") == 401


def test_keys_are_listed_and_revoked(tiny_model, tmp_path):
    state, file = tmp_path / "state.db", config(tmp_path / "zinc.toml", tiny_model)
    begin = int(time.time())

    def listed(server, tenant="carol", key=ADMIN):
        return server.request("GET", f"/v1/tenants/{tenant}/keys", key=key)[2]["data"]

    with serving("--config", file, state=state) as server:
        first = server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)[2]["api_key"]
        made = server.request("POST", "/v1/tenants/carol/keys", key=ADMIN)[2]
        second = made["api_key"]
        keys = listed(server)
        assert [key["hash"] for key in keys] == [hashed(first)[:23], hashed(second)[:23]]
        assert made["hash"] == keys[1]["hash"] and first not in json.dumps(keys)
        assert all(begin <= key["created"] <= time.time() and not key["configured"] for key in keys)
        assert listed(server, "me", first) == keys
        assert server.request("GET", "/v1/tenants/carol/keys", key=KEYS["alice"])[0] == 403
        path = f"/v1/tenants/carol/keys/{keys[0]['hash']}"
        assert server.request("DELETE", path, key=first)[0] == 403
        assert server.request("DELETE", path, {"x": 1}, key=ADMIN)[0] == 400
        assert ask(server, first)[0] == 200
        code, _, answer = server.request("DELETE", path, key=ADMIN)
        assert code == 200 and answer == {"id": "carol", "hash": keys[0]["hash"], "revoked": True}
        assert ask(server, first)[0] == 401 and ask(server, second)[0] == 200
        assert server.request("DELETE", path, key=ADMIN)[0] == 404
        for wrong in ("sha256:", "abc", "ABCDEF0123", "zzzzzzzz"):
            assert server.request("DELETE", f"/v1/tenants/carol/keys/{wrong}", key=ADMIN)[0] == 400
        # Those of the file are the file's to take away.
        [alice] = listed(server, "alice")
        assert alice["configured"] and alice["created"] is None and alice["hash"] == hashed(KEYS["alice"])[:23]
        code, _, answer = server.request("DELETE", f"/v1/tenants/alice/keys/{alice['hash']}", key=ADMIN)
        assert code == 409 and "configuration" in answer["error"]["message"]
        assert ask(server, KEYS["alice"])[0] == 200
        server.stop(signal.SIGKILL)
    with serving("--config", file, state=state) as server:
        assert ask(server, first)[0] == 401 and ask(server, second)[0] == 200
        assert listed(server) == keys[1:]


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/tenants/alice/keys"),
        ("POST", "/v1/tenants/alice/flush_prefix_cache"),
        ("DELETE", "/v1/tenants/alice"),
        ("POST", "/v1/trace/stop"),
        ("DELETE", "/v1/tenants/alice/keys/0123456789abcdef"),
    ],
)
def test_a_body_that_nobody_reads_is_refused(server, method, path):
    for body in ({"a": 1}, [], "x", b"{"):
        assert server.request(method, path, body, key=ADMIN)[0] == 400


def test_what_was_reserved_for_a_removed_tenant_is_free_again(server):
    reserving = {"reserved_kv_pages": 100, "max_kv_pages": 100}
    for round in range(20):  # together more than there are
        made = server.request("POST", "/v1/tenants", {"id": f"reserver-{round}", **reserving}, key=ADMIN)
        assert made[0] == 201, made
        assert ask(server, made[2]["api_key"])[0] == 200
        assert server.request("DELETE", f"/v1/tenants/reserver-{round}", key=ADMIN)[0] == 200
    for _ in range(2):  # one that is refused is not there
        greedy = {"id": "greedy", **reserving, "reserved_kv_pages": 10**6, "max_kv_pages": 10**6}
        code, _, answer = server.request("POST", "/v1/tenants", greedy, key=ADMIN)
        assert code == 400 and answer["error"]["param"] == "reserved_kv_pages"


def test_a_rate_is_kept_and_told(server):
    key = server.request("POST", "/v1/tenants", {"id": "rated", "requests_per_minute": 3}, key=ADMIN)[2]["api_key"]
    answers = [ask(server, key, 1) for _ in range(4)]
    assert [code for code, _, _ in answers] == [200, 200, 200, 429]
    remaining = [headers["x-ratelimit-remaining-requests"] for _, headers, _ in answers[:3]]
    assert remaining == ["2", "1", "0"]
    code, headers, answer = answers[3]
    assert 1 <= int(headers["Retry-After"]) <= 20 and answer["error"]["type"] == "rate_limit_error"
    assert ask(server, KEYS["alice"], 1)[0] == 200
    # Whatever the answer is.
    for body in ({}, {"temperature": 5}, {"prompt": [5] * 600}, {"model": "other"}):
        code, headers, _ = ask(server, key, 1, **body)
        assert code in (400, 404, 429)
        assert headers["x-ratelimit-limit-requests"] == "3" and headers["x-ratelimit-remaining-requests"] == "0"


def test_a_bound_on_open_requests_is_a_429(server):
    made = server.request("POST", "/v1/tenants", {"id": "narrow", "max_open_requests": 2}, key=ADMIN)[2]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        codes = [code for code, _, _ in pool.map(lambda _: ask(server, made["api_key"], 200), range(6))]
    assert set(codes) == {200, 429}


def test_choices_count_as_open_requests(server):
    made = server.request("POST", "/v1/tenants", {"id": "wide", "max_open_requests": 6}, key=ADMIN)[2]
    key = made["api_key"]
    code, headers, answer = ask(server, key, prompt=[[5, 6]] * 4, n=2)
    assert code == 400 and answer["error"]["param"] == "n" and "Retry-After" not in headers
    assert "8 choices, 6 allowed (max_open_requests)" in answer["error"]["message"]
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    long = {"prompt": [5, 6, 7, 8], "max_tokens": 500, "ignore_eos": True, "n": 4, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(long), {"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    response.readline()
    assert ask(server, key, n=3)[0] == 429
    assert ask(server, key, 1, n=2)[0] == 200
    response.read()
    connection.close()
    assert ask(server, key, n=6)[0] == 200
    server.request("PATCH", "/v1/tenants/wide", {"max_open_requests": 100000}, key=ADMIN)
    code, _, answer = ask(server, key, prompt=[[5]] * 256, n=128)
    assert code == 400 and "32768 choices, 16384 allowed (queue_cap)" in answer["error"]["message"]


def test_an_empty_id_unloads_nothing(server):
    assert server.request("POST", "/v1/models/unload", {"id": ""}, key=ADMIN)[0] == 400
    assert server.request("GET", "/v1/models", key=ADMIN)[2]["data"]


def test_a_proxy_speaks_for_others_and_nobody_else_does(server):
    name = "x-gateway-inference-fairness-id"
    before = usage(server, "alice")["requests"]
    assert ask(server, KEYS["gate"], headers={name: "alice"})[0] == 200
    assert usage(server, "alice")["requests"] == before + 1
    assert ask(server, KEYS["gate"], headers={name: "someone"})[0] == 200
    assert server.request("GET", "/v1/tenants/gate%2Fsomeone/usage", key=ADMIN)[0] in (200, 404)
    assert ask(server, KEYS["bob"], headers={name: "alice"})[0] == 200
    assert usage(server, "alice")["requests"] == before + 1
    assert ask(server, KEYS["gate"], headers={name: "no good name"})[0] == 400


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


def test_sighup_reads_tenants_and_keys_again(tiny_model, tmp_path):
    file = config(tmp_path / "zinc.toml", tiny_model)
    log = tmp_path / "log"
    with serving("--config", file, log_path=log) as server:
        assert ask(server, "key-of-dave")[0] == 401
        dave = f'[[tenants]]\nname = "dave"\nkeys = ["{hashed("key-of-dave")}"]\n'
        config(file, tiny_model, extra_tenants=dave)
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: ask(server, "key-of-dave")[0] == 200)
        # A tenant that was made at run time goes into the file and out of it again.
        assert server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)[0] == 201
        with_carol = f'[[tenants]]\nname = "carol"\nkeys = ["{hashed("key-of-carol")}"]\n'
        config(file, tiny_model, extra_tenants=dave + with_carol)
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: ask(server, "key-of-carol")[0] == 200)
        assert server.request("DELETE", "/v1/tenants/carol", key=ADMIN)[0] == 409
        config(file, tiny_model, extra_tenants=dave)
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: ask(server, "key-of-carol")[0] == 401)
        assert server.request("DELETE", "/v1/tenants/carol", key=ADMIN)[0] == 200

        def refuse(text):
            n_refused = log.read_text().count("nothing was changed")
            file.write_text(text)
            server.process.send_signal(signal.SIGHUP)
            server.wait(lambda: log.read_text().count("nothing was changed") > n_refused)
            assert ask(server, "key-of-dave")[0] == 200
            assert ask(server, None)[0] == 401

        model = f'[[models]]\npath = "{tiny_model}"\nid = "tiny"\n'
        refuse("nonsense = [")
        refuse("")  # as a file is while an editor writes it
        refuse(model)  # no key: everyone would be an admin
        refuse(f'admin_keys = ["{hashed("one")}"]\n[[tenants]]\nname = "eve"\nkeys = ["{hashed("one")}"]\n' + model)
        # The file's word on a tenant takes away the keys that it got at run time: this would leave none either.
        assert server.request("POST", "/v1/tenants", {"id": "fred"}, key=ADMIN)[0] == 201
        refuse(model + '[[tenants]]\nname = "fred"\n')


def test_a_tenant_may_be_changed_while_another_admin_removes_it(server):
    def send(method, path, body=None):
        for _ in range(150):
            status = server.request(method, path, body, key=ADMIN)[0]
            assert status in (200, 201, 404, 409), status

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        work = [pool.submit(send, "POST", "/v1/tenants", {"id": "fleeting"}) for _ in range(2)]
        work += [pool.submit(send, "PATCH", "/v1/tenants/fleeting", {"weight": 2})]
        work += [pool.submit(send, "DELETE", "/v1/tenants/fleeting")]
        for one in work:
            one.result()


NONE_OF_WHICH_NOBODY_COULD_DO = (
    "max_connections",
    "max_connections_per_address",
    "max_body_bytes",
    "max_answer_bytes",
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "x"),
        ("[server]\nport = 99999", "server.port"),
        ("[server]\nport = 'a'", "server.port"),
        *((f"[server]\n{name} = 0", f"server.{name}") for name in NONE_OF_WHICH_NOBODY_COULD_DO),
        ("[[tenants]]\nname = 'a'\nweight = nan", "nan is given"),
        *((f'[[tenants]]\nname = "{name}"', "tenants.name") for name in ("me", "..", "a b", "a\\nb")),
        ('[[models]]\npath = "a"\nid = "a\\nb"', "models.id"),
        *((f"[server]\ndrain_timeout_s = {s}", "0 to 86400") for s in ("1e300", "nan", "inf", "-1", "86401")),
        ("[[tenants]]\nkeys = []", "tenants.name"),
        ("[[tenants]]\nname = 'a'\nkeys = ['plain']", "sha256"),
        ("[[tenants]]\nname = 'a'\nweight = 0", "weight"),
        ("[[tenants]]\nname = 'a'\n[[tenants]]\nname = 'a'", "two tenants"),
        ("admin_keys = 'a'", "admin_keys"),
        ("a = ", "line 1"),
    ],
)
def test_a_bad_configuration_names_its_line(tiny_model, tmp_path, text, complaint):
    import subprocess

    from server_process import PROGRAM

    file = tmp_path / "zinc.toml"
    file.write_text(text)
    done = subprocess.run(
        [*PROGRAM, "serve", tiny_model, "--config", file, "--port", "0"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3 and complaint in done.stderr and "line " in done.stderr


def test_the_dashboard_asks_for_metrics_that_there_are(server):
    assert ask(server, KEYS["alice"])[0] == 200
    assert ask(server, KEYS["alice"], temperature=5)[0] == 400
    text = server.request("GET", "/metrics", key=ADMIN)[2].decode()
    there = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    dashboard = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "grafana.json").read_text()
    asked = set(re.findall(r"\bzinc:\w+", dashboard))
    assert len(asked) > 12 and asked <= there, asked - there


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
