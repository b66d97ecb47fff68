"""/v1/files and /v1/batches, as OpenAI's own client and others see them."""

import pytest

import tiny_model as tiny
from batch_helpers import (
    CHAT,
    MODEL,
    batch_now,
    by_id,
    chat_body,
    chats,
    content,
    create,
    ended,
    form,
    line,
    text_of,
    upload,
    usage_of,
)
from server_process import serving
from server_tenants import ADMIN, KEYS, config, hashed

openai = pytest.importorskip("openai")

SLOW, NARROW = "key-of-the-slow", "key-of-the-narrow"
EXTRA = (
    f'[[tenants]]\nname = "slow"\nkeys = ["{hashed(SLOW)}"]\ndecode_tokens_per_s = 0.1\n'
    f'[[tenants]]\nname = "narrow"\nkeys = ["{hashed(NARROW)}"]\nmax_open_requests = 4\n'
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    tiny.write(folder / "tiny.gguf")
    with serving(
        "--config",
        config(folder / "zinc.toml", folder / "tiny.gguf", extra_tenants=EXTRA),
        state=folder / "state.db",
        log_path=folder / "log",
    ) as server:
        server.folder = folder / "state.db.files"
        yield server


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=KEYS["alice"], max_retries=0)


def direct(server, body, url=CHAT, key=KEYS["alice"]):
    code, _, answer = server.request("POST", url, body, key=key)
    assert code == 200, answer
    return answer


def test_a_batch_gives_what_direct_calls_give(server, client):
    file = client.files.create(file=("in.jsonl", chats(12)), purpose="batch")
    assert file.object == "file" and file.bytes == len(chats(12)) and file.filename == "in.jsonl"
    assert file.purpose == "batch" and file.status == "processed" and file.expires_at == file.created_at + 30 * 86400
    batch = client.batches.create(
        input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"for": "a test"}
    )
    assert batch.object == "batch" and batch.status == "validating" and batch.metadata == {"for": "a test"}
    assert batch.expires_at == batch.created_at + 86400
    ended(server, {"id": batch.id}, KEYS["alice"])
    batch = client.batches.retrieve(batch.id)
    assert batch.status == "completed" and batch.error_file_id is None and batch.errors is None
    assert batch.in_progress_at and batch.finalizing_at and batch.completed_at and not batch.cancelled_at
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (12, 12, 0)
    output = by_id(client.files.content(batch.output_file_id).content)
    assert set(output) == {str(i) for i in range(12)}
    assert batch.usage.model_dump() == usage_of(output)
    assert batch.usage.output_tokens == 12 * 8 and batch.usage.input_tokens > 12
    for i in range(12):
        one = output[str(i)]
        assert one["error"] is None and one["id"].startswith("batch_req_")
        assert one["response"]["status_code"] == 200 and one["response"]["request_id"]
        assert text_of(one["response"]["body"]) == text_of(direct(server, chat_body(i)))
    assert client.files.retrieve(batch.output_file_id).purpose == "batch_output"
    assert client.files.content(file.id).content == chats(12)


@pytest.mark.parametrize(
    ("url", "body", "same"),
    [
        ("/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 6, "seed": 1}, lambda a: a["choices"][0]["text"]),
        ("/v1/responses", {"input": "a", "max_output_tokens": 6, "seed": 1}, lambda a: a["output"][-1]["content"]),
    ],
)
def test_other_endpoints_are_the_same(server, url, body, same):
    batch = ended(server, create(server, line("a", body, url).encode(), KEYS["bob"], url), KEYS["bob"])
    assert batch["status"] == "completed", batch
    output = by_id(content(server, batch["output_file_id"], KEYS["bob"]))
    assert batch["usage"] == usage_of(output) and batch["usage"]["output_tokens"] == 6
    [one] = output.values()
    assert same(one["response"]["body"]) == same(direct(server, body, url, KEYS["bob"]))


def test_lines_that_fail_are_in_a_file_of_their_own(server, client):
    lines = [
        line("good", chat_body(1)),
        line("bad field", chat_body(2, max_tokens=-1)),
        line("no such model", {**chat_body(3), "model": "other"}),
        line("embeds", chat_body(4)),
    ]
    batch = ended(server, create(server, "\n".join(lines).encode(), KEYS["alice"]), KEYS["alice"])
    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"total": 4, "completed": 2, "failed": 2}
    output = by_id(content(server, batch["output_file_id"], KEYS["alice"]))
    assert set(output) == {"good", "embeds"} and batch["usage"] == usage_of(output)
    failed = by_id(content(server, batch["error_file_id"], KEYS["alice"]))
    assert failed["bad field"]["response"]["status_code"] == 400
    assert failed["bad field"]["response"]["body"]["error"]["param"] == "max_tokens"
    assert failed["no such model"]["response"]["status_code"] == 404
    assert failed["no such model"]["response"]["body"]["error"]["code"] == "model_not_found"


def test_batches_count_in_the_ledger(server):
    def requests():
        return server.request("GET", "/v1/tenants/bob/usage", key=ADMIN)[2]["requests"]

    before = requests()
    assert ended(server, create(server, chats(5), KEYS["bob"]), KEYS["bob"])["status"] == "completed"
    assert requests() == before + 5


def test_what_is_refused_for_the_moment_is_tried_again(server):
    key = NARROW  # 4 choices at once: two lines of three are one too many
    batch = ended(server, create(server, chats(4, n=3), key), key)
    assert batch["request_counts"] == {"total": 4, "completed": 4, "failed": 0}
    assert len(by_id(content(server, batch["output_file_id"], key))) == 4


@pytest.mark.parametrize(
    ("text", "number", "param", "words"),
    [
        ("{", 1, None, "[json]"),
        (line("a", chat_body(1)) + "\n" + line("a", chat_body(2)), 2, "custom_id", '"a" is that of line 1 too'),
        (line("a", {}, "/v1/completions"), 1, "url", f'"/v1/completions" is given, the batch\'s endpoint is "{CHAT}"'),
        (line("a", {"stream": True}), 1, "body.stream", "true is given"),
        ("\n\n" + line("a", []), 3, "body", "[] is given"),
        ("\n", None, None, "no line"),
    ],
)
def test_a_file_that_is_wrong_fails_the_batch_with_the_lines(server, text, number, param, words):
    batch = ended(server, create(server, text.encode(), KEYS["alice"]), KEYS["alice"])
    assert batch["status"] == "failed" and batch["failed_at"] and batch["output_file_id"] is None
    [error] = batch["errors"]["data"]
    assert (error["line"], error["param"]) == (number, param) and words in error["message"], error


def test_what_a_batch_asks_is_read_field_by_field(server):
    key = KEYS["alice"]
    _, _, file = upload(server, chats(1), key)
    good = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h"}
    for param, change in [
        ("input_file_id", {"input_file_id": None}),
        ("input_file_id", {"input_file_id": 5}),
        ("endpoint", {"endpoint": "/v1/files"}),
        ("endpoint", {"endpoint": None}),
        ("completion_window", {"completion_window": "1h"}),
        ("completion_window", {"completion_window": None}),
        ("metadata", {"metadata": []}),
        ("metadata", {"metadata": {"a": 1}}),
        ("metadata", {"metadata": {str(i): "" for i in range(17)}}),
        ("metadata", {"metadata": {"a": "x" * 513}}),
        ("output_expires_after", {"output_expires_after": {"anchor": "created_at", "seconds": 3600}}),
        ("other", {"other": 1}),
    ]:
        code, _, answer = server.request("POST", "/v1/batches", {**good, **change}, key=key)
        assert (code, answer["error"]["param"]) == (400, param), answer
    code, _, answer = server.request("POST", "/v1/batches", {**good, "input_file_id": "file-0"}, key=key)
    assert (code, answer["error"]["param"]) == (404, "input_file_id")
    batch = ended(server, create(server, chats(1), key), key)
    code, _, answer = server.request("POST", "/v1/batches", {**good, "input_file_id": batch["output_file_id"]}, key=key)
    assert code == 400 and "batch_output, batch wanted" in answer["error"]["message"]
    for path in ("/v1/batches?limit=0", "/v1/batches?limit=101", "/v1/batches?after=x", "/v1/batches?limit=%zz"):
        assert server.request("GET", path, key=key)[0] == 400
    assert server.request("GET", "/v1/batches?offset=1", key=key)[2]["error"]["param"] == "offset"


def test_what_an_upload_holds_is_read_field_by_field(server):
    key = KEYS["alice"]

    def refused(kind, body):
        code, _, answer = server.request("POST", "/v1/files", body, key=key, headers={"Content-Type": kind})
        return code, answer["error"]["param"], answer["error"]["message"]

    assert refused(*form(b"", name="a"))[:2] == (400, "file")
    assert refused(*form(b"x", purpose="fine-tune"))[:2] == (400, "purpose")
    assert refused(*form(b"x", name="a" * 256))[:2] == (400, "file")
    assert refused(*form(b"x", name=""))[:2] == (400, "file")
    kind, body = form(b"x")
    assert refused(kind, body.replace(b'name="file"', b'name="fill"'))[:2] == (400, "fill")
    assert refused(kind, body.replace(b'; filename="in.jsonl"', b""))[:2] == (400, "file")
    assert refused(kind, body.replace(b'name="purpose"', b'name="file"'))[:2] == (400, "file")
    assert refused(kind, b"--XyZ--\r\n")[:2] == (400, "purpose")
    assert refused(kind, body[:-9])[0] == 400
    assert refused("multipart/form-data", body)[2].endswith("has no boundary")
    assert refused("application/json", b"{}")[0] == 415
    for n in range(0, len(body) - 2, 7):
        assert refused(kind, body[:n])[0] == 400


def test_a_file_may_be_larger_than_other_bodies(server):
    key, large = KEYS["gate"], b"x" * (20 << 20)
    code, _, file = upload(server, large, key)
    assert code == 200 and file["bytes"] == len(large)
    assert content(server, file["id"], key) == large
    head = "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\n"
    for path, kind, n in (
        ("/v1/files", "multipart/form-data; boundary=a", 100_100_000),
        ("/v1/completions", "application/json", 20 << 20),
    ):
        answer = server.raw((head.format(path, key, kind) + f"Content-Length: {n}\r\n\r\n").encode())
        assert answer.startswith(b"HTTP/1.1 413 ") and b"the body has more than " in answer
    assert server.request("DELETE", f"/v1/files/{file['id']}", key=key)[2]["deleted"] is True
    assert not (server.folder / file["id"]).exists()


def test_a_batch_is_cancelled(server):
    batch = create(server, chats(40), SLOW)
    server.wait(lambda: batch_now(server, batch, SLOW)["status"] == "in_progress")
    waiting = create(server, chats(1), SLOW)  # its turn comes when the first one has ended
    code, _, file = server.request("DELETE", f"/v1/files/{batch['input_file_id']}", key=SLOW)
    assert code == 409 and batch["id"] in file["error"]["message"]
    for one in (waiting, batch):
        code, _, now = server.request("POST", f"/v1/batches/{one['id']}/cancel", key=SLOW)
        assert code == 200 and now["status"] in ("cancelling", "cancelled")
    now = ended(server, batch, SLOW)
    assert now["status"] == "cancelled" and now["cancelling_at"] and now["cancelled_at"]
    rest = by_id(content(server, now["error_file_id"], SLOW))
    output = by_id(content(server, now["output_file_id"], SLOW))
    assert rest and set(rest).isdisjoint(output) and set(rest) | set(output) == {str(i) for i in range(40)}
    assert {one["error"]["code"] for one in rest.values()} == {"batch_cancelled"}
    assert now["request_counts"] == {"total": 40, "completed": len(output), "failed": len(rest)}
    now = ended(server, waiting, SLOW)
    assert now["status"] == "cancelled" and now["output_file_id"] is now["error_file_id"] is None
    server.wait(lambda: server.gauge("vllm:num_requests_running", ADMIN) == 0)
    batch = ended(server, create(server, chats(1), KEYS["alice"]), KEYS["alice"])
    code, headers, answer = server.request("POST", f"/v1/batches/{batch['id']}/cancel", key=KEYS["alice"])
    assert code == 409 and "is completed" in answer["error"]["message"] and headers["x-should-retry"] == "false"


def test_a_tenant_sees_its_own_alone(server):
    batch = ended(server, create(server, chats(2), KEYS["alice"]), KEYS["alice"])
    for key in (KEYS["bob"], KEYS["gate"]):
        for file_id in (batch["input_file_id"], batch["output_file_id"]):
            assert server.request("GET", f"/v1/files/{file_id}", key=key)[0] == 404
            assert server.request("GET", f"/v1/files/{file_id}/content", key=key)[0] == 404
            assert server.request("DELETE", f"/v1/files/{file_id}", key=key)[0] == 404
            assert file_id not in {f["id"] for f in server.request("GET", "/v1/files", key=key)[2]["data"]}
        assert server.request("GET", f"/v1/batches/{batch['id']}", key=key)[0] == 404
        assert server.request("POST", f"/v1/batches/{batch['id']}/cancel", key=key)[0] == 404
        assert batch["id"] not in {b["id"] for b in server.request("GET", "/v1/batches", key=key)[2]["data"]}
        body = {"input_file_id": batch["input_file_id"], "endpoint": CHAT, "completion_window": "24h"}
        assert server.request("POST", "/v1/batches", body, key=key)[0] == 404
    assert server.request("GET", "/v1/files", key=ADMIN)[0] == 403
    assert server.request("GET", "/v1/batches")[0] == 401
    assert content(server, batch["output_file_id"], KEYS["alice"])


def test_lists_are_read_by_pages(tiny_model, tmp_path):
    with serving(tiny_model, "--id", MODEL, "--max-slots", 4, state=tmp_path / "state.db") as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)
        batches = [ended(server, create(server, chats(1)))["id"] for _ in range(5)]
        assert sorted(b.id for b in client.batches.list(limit=2)) == sorted(batches)
        assert len({f.id for f in client.files.list(limit=3)}) == 10
        assert {f.purpose for f in client.files.list(purpose="batch_output", limit=2)} == {"batch_output"}
        ascending = [f.id for f in client.files.list(order="asc")]
        assert [f.id for f in client.files.list(order="desc")] == ascending[::-1]
        page = server.request("GET", "/v1/files?limit=4")[2]
        assert page["has_more"] and [page["first_id"], page["last_id"]] == [page["data"][i]["id"] for i in (0, 3)]
        for f in ascending:
            assert client.files.delete(f).deleted
        assert server.request("GET", "/v1/files")[2]["data"] == []
        assert not list((tmp_path / "state.db.files").iterdir())


def test_files_go_with_their_tenant(server):
    _, _, made = server.request("POST", "/v1/tenants", {"id": "carol", "decode_tokens_per_s": 0.1}, key=ADMIN)
    key, before = made["api_key"], {path.name for path in server.folder.iterdir()}
    batch = create(server, chats(3), key)
    server.wait(lambda: batch_now(server, batch, key)["status"] == "in_progress")
    assert {path.name for path in server.folder.iterdir()} - before
    assert server.request("DELETE", "/v1/tenants/carol", key=ADMIN)[0] == 200
    # What an earlier batch left may go meanwhile, too.
    server.wait(lambda: not {path.name for path in server.folder.iterdir()} - before)
    _, _, made = server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)
    for path in ("/v1/files", "/v1/batches"):
        assert server.request("GET", path, key=made["api_key"])[2]["data"] == []
    server.request("DELETE", "/v1/tenants/carol", key=ADMIN)


def test_without_a_state_nothing_is_kept(tiny_model):
    with serving(tiny_model, "--id", MODEL, "--max-slots", 2) as server:
        for code, headers, answer in (
            upload(server, chats(1)),
            server.request("GET", "/v1/files"),
            server.request("POST", "/v1/batches", {}),
            server.request("GET", "/v1/batches/batch_1"),
        ):
            assert code == 501 and headers["x-should-retry"] == "false"
            assert "--state FILE" in answer["error"]["message"]


def test_a_page_of_another_site_uploads_nothing(tiny_model, tmp_path):
    with serving(tiny_model, "--id", MODEL, "--max-slots", 2, state=tmp_path / "state.db") as server:
        assert upload(server, chats(1))[0] == 200
        own = {"Origin": server.url}
        for sent in ({"Referer": "http://evil.example/"}, {"Sec-Fetch-Site": "same-origin"}, own):
            code, _, answer = upload(server, chats(1), **sent)
            assert code == 415 and "Authorization" in answer["error"]["message"]
        for foreign in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert upload(server, chats(1), **foreign)[0] == 403
        assert upload(server, chats(1), Authorization="Bearer any", **own)[0] == 200
        kind, body = form(chats(1))
        assert server.request("POST", "/v1/batches", body, headers={"Content-Type": kind})[0] == 415
        assert len(server.request("GET", "/v1/files")[2]["data"]) == 2
