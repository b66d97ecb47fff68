"""Keys, quotas and the ledger of the server."""

import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import signal

import pytest

from server_process import serving
from server_tenants import ADMIN, KEYS, ask, config, hashed, usage


@pytest.fixture(scope="module")
def server(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving("--config", config(folder / "zinc.toml", tiny_model), state=folder / "state.db") as server:
        server.config = folder / "zinc.toml"
        yield server


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
    # Other tests leave prefixes of these tenants, and a few of their first tokens may be drawn here too.
    assert max(cached[0], cached[1], cached[3]) < 16 and min(cached[2], cached[4]) > 80


def test_a_tenant_is_made_changed_and_removed(server):
    code, _, made = server.request("POST", "/v1/tenants", {"id": "carol", "qos_class": "batch", "weight": 2}, key=ADMIN)
    assert code == 201 and made["settings"]["qos_class"] == "batch"
    key = made["api_key"]
    assert ask(server, key)[0] == 200
    assert server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)[0] == 409
    code, _, answer = server.request("PATCH", "/v1/tenants/carol", {"weight": -1}, key=ADMIN)
    assert code == 400 and answer["error"]["param"] == "weight"
    code, _, answer = server.request("PATCH", "/v1/tenants/carol", {"speculate": "often"}, key=ADMIN)
    assert code == 400 and answer["error"]["param"] == "speculate"
    code, _, answer = server.request("PATCH", "/v1/tenants/carol", {"speculate": "off"}, key=ADMIN)
    assert code == 200 and answer["settings"]["speculate"] == "off"
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
