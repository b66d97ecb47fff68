"""What a tenant's requests may leave in the state and in memory, who may read it, and what other sites may send."""

import http.client
import json
import os
import sqlite3
import stat

import pytest

import tiny_model as tiny
from batch_helpers import create, ended, line
from server_process import serving
from server_tenants import KEYS, config, hashed
from test_gateways import with_metrics

MOST_BODY = 20_000
GROUP = {name: f"key-of-{name}" for name in ("ann", "ben")}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds")
    tiny.write(folder / "tiny.gguf")
    group = "".join(
        f'[[tenants]]\nname = "{name}"\nkeys = ["{hashed(key)}"]\nisolation_group = "g"\n'
        for name, key in GROUP.items()
    )
    before = os.umask(0)  # as loose as a system can have it
    try:
        with serving(
            "--config",
            config(
                folder / "zinc.toml",
                folder / "tiny.gguf",
                more="may_store = true",
                extra_tenants=group + f"[server]\nmax_body_bytes = {MOST_BODY}\n",
            ),
            state=folder / "state.db",
        ) as server:
            server.state = folder / "state.db"
            yield server
    finally:
        os.umask(before)


def respond(server, key=KEYS["alice"], **fields):
    body = {"model": "tiny", "input": "a", "max_output_tokens": 2, **fields}
    return server.request("POST", "/v1/responses", body, key=key)


def rows(server, sql):
    with sqlite3.connect(f"file:{server.state}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def test_a_batch_that_failed_leaves_a_bounded_row(server):
    key = KEYS["alice"]
    name = "\x01" * 500  # six bytes each as JSON
    bad = [line(name, {}) for _ in range(5)] + [line(f"{i}", {}, "/" + "\x02" * 200) for i in range(10)]
    batch = ended(server, create(server, "\n".join(bad).encode(), key), key)
    assert batch["status"] == "failed"
    assert all(len(error["message"]) <= 420 for error in batch["errors"]["data"])
    [(size, counted)] = rows(
        server, f"SELECT LENGTH(CAST(body AS BLOB)), size FROM objects WHERE id = '{batch['id']}' AND kind = 'batch'"
    )
    assert size == counted <= 20_000


def test_lists_go_on_behind_the_last_of_a_page(server):
    key = KEYS["bob"]
    made = [create(server, line("a", {}, "/v1/files").encode(), key)["id"] for _ in range(5)]
    for order, wanted in [("desc", made[::-1]), ("asc", made)]:
        seen, after = [], ""
        while True:
            path = f"/v1/batches?limit=2&order={order}" + (f"&after={after}" if after else "")
            page = server.request("GET", path, key=key)[2]
            ids = [one["id"] for one in page["data"]]
            assert (page["object"], page["first_id"], page["last_id"]) == ("list", ids[0], ids[-1])
            seen += ids
            after = page["last_id"]
            if not page["has_more"]:
                break
        assert sorted(seen) == sorted(wanted) and len(seen) == len(wanted)
        times = [server.request("GET", f"/v1/batches/{id}", key=key)[2]["created_at"] for id in seen]
        assert times == sorted(times, reverse=order == "desc")
    assert server.request("GET", f"/v1/batches?after={made[0]}", key=KEYS["alice"])[0] == 400
    files = server.request("GET", "/v1/files?purpose=batch&limit=3", key=key)[2]
    assert len(files["data"]) == 3 and files["has_more"] is True
    empty = server.request("GET", "/v1/files?purpose=batch_output", key=key)[2]
    assert empty == {"object": "list", "first_id": None, "last_id": None, "data": [], "has_more": False}


def test_a_start_reads_no_batch_that_has_ended(tmp_path):
    tiny.write(tmp_path / "tiny.gguf")
    start = [tmp_path / "tiny.gguf", "--id", "tiny"]
    with serving(*start, state=tmp_path / "state.db"):
        pass
    with sqlite3.connect(tmp_path / "state.db") as db:
        insert = "INSERT INTO objects (kind, tenant, id, time_s, label, size, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
        db.execute(insert, ("batch", "default", "batch_1", 2**33, "failed", 5, "this is not read"))
    with serving(*start, state=tmp_path / "state.db") as server:
        assert server.request("GET", "/livez")[0] == 200


def test_a_conversation_that_is_kept_is_as_large_as_one_body_at_most(server):
    def said(n):
        part = {"type": "output_text", "text": "a", "annotations": ["x" * n]}
        return [{"role": "assistant", "content": [part]}, {"role": "user", "content": "b"}]

    code, _, first = respond(server, input=said(9_000))
    assert code == 200, first
    code, _, second = respond(server, input="c", previous_response_id=first["id"])
    assert code == 200, second
    code, _, answer = respond(server, input=said(11_000), previous_response_id=second["id"])
    error = answer["error"]
    assert (code, error["param"], error["code"]) == (400, "previous_response_id", "context_length_exceeded"), answer
    assert f"{MOST_BODY} allowed in all (max_body_bytes)" in error["message"]
    assert "has 9" in error["message"] or "has 1" in error["message"]
    assert respond(server, input="d", previous_response_id=second["id"])[0] == 200  # what is held is given back


@pytest.mark.parametrize(("value", "n"), [("[]", 4_500_000), ("{}", 4_500_000), ('{"a":0}', 1_500_000)])
def test_a_body_that_takes_too_much_as_parsed_is_refused_before_it_is(tiny_model, value, n):
    with serving(tiny_model, "--id", "tiny") as server:
        body = '{"prompt":"a","unknown":[' + ",".join([value] * n) + "]}"
        for path in ("/v1/completions", "/v1/embeddings", "/tokenize", "/v1/prefix"):
            code, _, answer = server.request("POST", path, body)
            assert code == 400 and "as it is parsed, 201326592 allowed" in answer["error"]["message"], answer
        with open(f"/proc/{server.process.pid}/status") as status:
            [peak] = [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
        assert peak < 200_000  # KiB; parsed, one of them takes more
        text = server.request("POST", "/tokenize", {"prompt": "a" * 13_000_000})[2]  # as large, and one value
        assert "as it is parsed" not in json.dumps(text)


def test_what_items_have_besides_is_refused_and_not_kept(server):
    items = [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "foo": "x" * 1000}]
    code, _, answer = respond(server, input=items)
    assert (code, answer["error"]["param"]) == (400, "input[1].foo")
    assert rows(server, "SELECT COUNT(*) FROM responses WHERE body LIKE '%foo%'") == [(0,)]


def test_metadata_is_shown_within_its_bounds(server):
    good = {f"k{i}": "v" * 512 for i in range(16)}
    code, _, answer = respond(server, metadata=good)
    assert code == 200 and answer["metadata"] == good
    code, _, answer = respond(server, metadata={"k": "v" * 513})
    assert (code, answer["error"]["param"]) == (400, "metadata")
    assert "513 characters, 512 allowed" in answer["error"]["message"]


def test_what_holds_texts_is_its_owners_alone(server):
    """The umask of this server takes no right away."""
    assert respond(server)[0] == 200
    key = KEYS["alice"]
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
    batch = ended(server, create(server, "\n".join([line("a", body), line("b", {})]).encode(), key), key)
    assert batch["output_file_id"] and batch["error_file_id"]
    files = [server.state.with_name(server.state.name + ending) for ending in ("", "-wal", "-shm")]
    folder = server.state.with_name("state.db.files")
    contents = list(folder.iterdir())
    assert len(contents) >= 3
    for path in [*files, *contents]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_members_flush_leaves_what_others_computed(server):
    def cached(name, prompt):
        body = {"prompt": prompt, "max_tokens": 1, "ignore_eos": True}
        code, _, answer = server.request("POST", "/v1/completions", body, key=GROUP[name])
        assert code == 200, answer
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def flush(name):
        return server.request("POST", "/v1/tenants/me/flush_prefix_cache", key=GROUP[name])[2]

    of_ann, of_ben = [21] * 40, [22] * 40
    assert cached("ann", of_ann) == cached("ben", of_ben) == 0
    flush("ben")
    assert cached("ann", of_ann) >= 32  # not ben's to forget
    assert cached("ann", of_ben) == 0
    flush("ann")
    assert cached("ben", of_ann) == 0


def test_a_page_of_another_site_sends_nothing_without_a_type(tiny_model):
    with serving(tiny_model, "--id", "tiny") as server:
        body = json.dumps({"prompt": "a"})
        for site, wanted in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]:
            headers = {"Content-Type": "", "Sec-Fetch-Site": site}
            assert server.request("POST", "/tokenize", body, headers=headers)[0] == wanted, site
        assert server.request("GET", "/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link
        own = f"//{server.host}:{server.port}"
        for scheme, wanted in [("http:", 200), ("https:", 403)]:
            headers = {"Origin": scheme + own}
            assert server.request("POST", "/tokenize", {"prompt": "a"}, headers=headers)[0] == wanted, scheme


def test_the_metrics_port_answers_to_no_other_sites_name(tiny_model):
    def status_of(other, host):
        connection = http.client.HTTPConnection(other.host, other.port, timeout=30)
        connection.request("GET", "/metrics", headers={"Host": host})
        return connection.getresponse().status

    with with_metrics(tiny_model) as (_, other):
        assert status_of(other, "rebound.example") == 403
        assert status_of(other, f"127.0.0.1:{other.port}") == status_of(other, "localhost") == 200
    with with_metrics(tiny_model, "--api-key", "k") as (_, other):  # its port asks for no key
        assert status_of(other, "rebound.example") == 403
    with with_metrics(tiny_model, "--allow-anonymous") as (_, other):
        assert status_of(other, "models.example") == 200
