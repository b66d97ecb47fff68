"""POST /v1/embeddings: all forms of input, both encodings, the same bits however asked for, and what is refused."""

import base64
import concurrent.futures

import numpy as np
import pytest

import tiny_model as tiny
from server_process import serving

PATH = "/v1/embeddings"
TEXTS = ["hello", "the then there", "a longer text about the thing and another in there", "x"]


@pytest.fixture(scope="module", params=["mean", "last"])
def server(request, tiny_model):
    arguments = ("--id", "tiny", "--pooling", request.param, "--max-slots", 4, "--chunk-cap", 16)
    with serving(tiny_model, *arguments) as server:
        server.pooling = request.param
        yield server


@pytest.fixture(scope="module")
def generating(tiny_model):
    with serving(tiny_model, "--id", "tiny") as server:
        yield server


def embed(server, texts, **more):
    code, headers, body = server.request("POST", PATH, {"model": "tiny", "input": texts, **more})
    assert code == 200, body
    assert body["object"] == "list" and body["model"] == "tiny"
    assert [each["index"] for each in body["data"]] == list(range(len(body["data"])))
    assert {each["object"] for each in body["data"]} == {"embedding"}
    rows = [each["embedding"] for each in body["data"]]
    if more.get("encoding_format") == "base64":
        return np.array([np.frombuffer(base64.b64decode(row, validate=True), "<f4") for row in rows]), body["usage"]
    return np.array(rows, np.float32), body["usage"]


def refused(server, body):
    code, headers, answer = server.request("POST", PATH, body)
    return code, answer["error"]["param"], answer["error"]["message"]


def test_one_text_and_several_have_the_same_bits(server):
    rows, usage = embed(server, TEXTS)
    assert rows.shape == (len(TEXTS), tiny.DIM)
    assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-6)
    for text, row in zip(TEXTS, rows, strict=True):
        alone, _ = embed(server, text)
        assert alone.tobytes() == row.tobytes()
    assert len({row.tobytes() for row in rows}) == len(TEXTS)
    assert usage["prompt_tokens"] == usage["total_tokens"] > 0


def test_base64_is_the_same_floats(server):
    assert embed(server, TEXTS, encoding_format="base64")[0].tobytes() == embed(server, TEXTS)[0].tobytes()


def test_token_ids_are_the_text(server):
    ids = [server.request("POST", "/tokenize", {"prompt": text})[2]["tokens"] for text in TEXTS]
    rows, usage = embed(server, TEXTS)
    assert embed(server, ids)[0].tobytes() == rows.tobytes()
    assert embed(server, ids[1])[0].tobytes() == rows[1].tobytes()
    assert usage["prompt_tokens"] == sum(map(len, ids))


def test_dimensions_are_the_first_so_many_of_length_one(server):
    whole, _ = embed(server, TEXTS)
    cut, _ = embed(server, TEXTS, dimensions=8)
    assert cut.shape == (len(TEXTS), 8)
    wanted = whole[:, :8].astype(np.float64)
    assert np.allclose(cut, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)
    assert embed(server, TEXTS, dimensions=tiny.DIM)[0].tobytes() == whole.tobytes()


def test_many_at_once_have_the_bits_of_each_alone(server):
    texts = [f"{'the ' * (i % 9)}text {i}" for i in range(40)]
    alone = np.concatenate([embed(server, text)[0] for text in texts])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda text: embed(server, text)[0], texts))
    assert np.concatenate(rows).tobytes() == alone.tobytes()
    assert embed(server, texts)[0].tobytes() == alone.tobytes()


def test_a_cached_prefix_changes_no_bit(server):
    text = "the cached prefix " * 12
    server.request("POST", "/v1/tenants/me/flush_prefix_cache")
    first, usage = embed(server, text + "one")
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    again, usage = embed(server, text + "one")
    assert usage["prompt_tokens_details"]["cached_tokens"] > 0
    assert again.tobytes() == first.tobytes()
    server.request("POST", "/v1/tenants/me/flush_prefix_cache")
    cached, _ = embed(server, text + "two")
    server.request("POST", "/v1/tenants/me/flush_prefix_cache")
    assert embed(server, text + "two")[0].tobytes() == cached.tobytes()


def test_the_most_inputs_that_there_may_be(server):
    rows, usage = embed(server, [[1 + i % 200] for i in range(2048)], encoding_format="base64")
    assert rows.shape == (2048, tiny.DIM) and usage["prompt_tokens"] == 2048
    assert rows[:200].tobytes() == rows[200:400].tobytes()
    assert refused(server, {"input": [[1]] * 2049}) == (
        400,
        "input",
        "[request] input: 2049 inputs, at most 2048 allowed",
    )


def test_the_ledger_counts_prompt_tokens(server):
    def counted():
        sums = server.request("GET", "/v1/tenants/me/usage")[2]
        assert sums["completion_tokens"] == 0
        return sums["prompt_tokens"], sums["requests"]

    before = counted()
    _, usage = embed(server, TEXTS)
    assert counted() == (before[0] + usage["prompt_tokens"], before[1] + 1)


def test_models_say_what_they_give(server, generating):
    model = server.request("GET", "/v1/models/tiny")[2]
    assert (model["capabilities"], model["pooling"], model["embedding_dim"]) == (
        ["embedding"],
        server.pooling,
        tiny.DIM,
    )
    model = generating.request("GET", "/v1/models/tiny")[2]
    assert model["capabilities"] == ["completion"] and "pooling" not in model


def test_what_a_model_does_not_give_is_refused_by_name(server, generating):
    code, param, message = refused(generating, {"input": "hi"})
    assert (code, param) == (400, "model") and "generates and gives no embeddings" in message
    for path, body in {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
        "/v1/completions": {"prompt": "hi"},
        "/generate": {"token_ids": [1]},
    }.items():
        code, _, answer = server.request("POST", path, body)
        assert (code, answer["error"]["param"]) == (400, "model")
        assert f"gives embeddings (pooling {server.pooling}) and generates nothing" in answer["error"]["message"]
    chat = {"messages": [{"role": "user", "content": "hi"}], "model": "tiny", "max_tokens": 5}
    for path, body in {"/v1/messages": chat, "/v1/responses": {"input": "hi"}}.items():
        code, _, answer = server.request("POST", path, body)
        assert code == 400 and "generates nothing" in answer["error"]["message"]
    assert server.request("POST", "/api/show", {"model": "tiny"})[2]["capabilities"] == ["embedding"]


REFUSED = {
    "no input": ({}, "input", "it is missing"),
    "an empty text": ({"input": ""}, "input", "not empty"),
    "an empty list": ({"input": []}, "input", "not empty"),
    "an empty text among others": ({"input": ["a", ""]}, "input", 'input[1]: "" is given'),
    "a list of an empty list": ({"input": [[]]}, "input", "input[0]: [] is given"),
    "null among others": ({"input": ["a", "b", None]}, "input", "input[2]: null is given"),
    "a number": ({"input": 3}, "input", "3 is given"),
    "half an id": ({"input": [1, 2.5]}, "input", "is given"),
    "an object": ({"input": {"text": "a"}}, "input", "is given"),
    "an id beyond the vocabulary": ({"input": [1, 99999]}, "input", "token id 99999, the vocabulary has 448"),
    "a text too long": ({"input": ["a", "the " * 2000]}, "input", "maximum context length is 512 tokens"),
    "ids too many": ({"input": [[1] * 513]}, "input", "513"),
    "another format": ({"input": "a", "encoding_format": "int8"}, "encoding_format", "float, base64"),
    "no dimensions": ({"input": "a", "dimensions": 0}, "dimensions", "1 to"),
    "more dimensions": ({"input": "a", "dimensions": 65}, "dimensions", "65 is given, 1 to 64 allowed"),
    "a user that is no text": ({"input": "a", "user": 3}, "user", "3"),
    "another field": ({"input": "a", "normalize": True}, "normalize", "no such field"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_by_its_field(server, name):
    body, param, words = REFUSED[name]
    code, found, message = refused(server, body)
    assert (code, found) == (400, param), message
    assert words in message


def test_the_input_that_is_at_fault_is_named(server):
    code, param, message = refused(server, {"input": ["a", "b", [1, 99999], "c"]})
    assert (code, param) == (400, "input") and message.startswith("input[2]: ")


def test_a_refusal_leaves_nothing_behind(server):
    for _ in range(5):
        refused(server, {"input": [*["the " * 20] * 30, [99999]]})
    server.wait(lambda: server.gauge("zinc:tenant_slots") == 0)
    assert embed(server, "hello")[0].shape == (1, tiny.DIM)


def test_unknown_fields_are_passed_over_where_the_server_was_told_to(tiny_model):
    with serving(tiny_model, "--pooling", "mean", "--tolerant") as server:
        code, headers, _ = server.request("POST", PATH, {"input": "a", "normalize": True, "user": "me"})
        assert code == 200 and headers["x-zinc-ignored-fields"] == "normalize"


def test_a_file_that_says_how_it_pools_needs_no_option(tmp_path):
    path = tmp_path / "pooled.gguf"
    tiny.write(path, pooling=3)
    with serving(path, "--id", "tiny") as server:
        assert server.request("GET", "/v1/models/tiny")[2]["pooling"] == "last"
    with serving(path, "--id", "tiny", "--pooling", "none") as server:
        assert server.request("GET", "/v1/models/tiny")[2]["capabilities"] == ["completion"]


def test_a_call_is_under_way_while_the_server_drains(tiny_model):
    with serving(tiny_model, "--pooling", "last", "--max-slots", 2) as server:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            texts = [[1 + i % 200] * 100 for i in range(500)]
            answer = pool.submit(server.request, "POST", PATH, {"input": texts, "encoding_format": "base64"})
            server.wait(lambda: server.gauge("zinc:tenant_slots") > 0 or answer.done())
            assert server.stop() == 0
            code, _, body = answer.result(30)
        assert code == 200 and len(body["data"]) == 500


def test_openais_client(server):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)
    answer = client.embeddings.create(model="tiny", input=TEXTS)  # it asks for base64
    rows, _ = embed(server, TEXTS)
    assert np.array([each.embedding for each in answer.data], np.float32).tobytes() == rows.tobytes()
    assert answer.usage.prompt_tokens > 0
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="tiny", input="a", dimensions=1000)
    assert caught.value.param == "dimensions"
    azure = openai.AzureOpenAI(azure_endpoint=server.url, api_key="any", api_version="2024-10-21", max_retries=0)
    assert azure.embeddings.create(model="tiny", input="a").data[0].index == 0


# Ollama's


def ollama(server, path, body, status=200):
    code, _, answer = server.request("POST", path, body)
    assert code == status, answer
    return answer


def test_ollama_has_the_same_vectors(server):
    rows, usage = embed(server, TEXTS)
    answer = ollama(
        server, "/api/embed", {"model": "tiny:latest", "input": TEXTS, "truncate": True, "keep_alive": "5m"}
    )
    assert np.array(answer["embeddings"], np.float32).tobytes() == rows.tobytes()
    assert (answer["model"], answer["prompt_eval_count"]) == ("tiny", usage["prompt_tokens"])
    assert answer["total_duration"] > 0
    one = ollama(server, "/api/embed", {"model": "tiny", "input": TEXTS[1], "options": {"num_ctx": 64}})
    assert np.array(one["embeddings"], np.float32).tobytes() == rows[1].tobytes()
    cut = ollama(server, "/api/embed", {"model": "tiny", "input": TEXTS, "dimensions": 7})
    assert np.array(cut["embeddings"]).shape == (len(TEXTS), 7)
    old = ollama(server, "/api/embeddings", {"model": "tiny", "prompt": TEXTS[1]})
    assert old.keys() == {"embedding"} and np.array(old["embedding"], np.float32).tobytes() == rows[1].tobytes()


@pytest.mark.parametrize(
    ("path", "fields", "status", "word"),
    [
        ("/api/embed", {}, 400, "input"),
        ("/api/embed", {"input": ""}, 400, "input"),
        ("/api/embed", {"input": [["x"]]}, 400, "input"),
        ("/api/embed", {"input": "a", "truncate": 1}, 400, "truncate"),
        ("/api/embed", {"input": "a", "colour": 1}, 400, "colour"),
        ("/api/embed", {"input": "a", "options": {"num_ctx": 1 << 24}}, 400, "num_ctx"),
        ("/api/embed", {"input": "a", "dimensions": tiny.DIM + 1}, 400, str(tiny.DIM)),
        ("/api/embed", {"input": "a", "model": "other"}, 404, "other"),
        ("/api/embed", {"input": "the " * 3000}, 400, "tokens"),
        ("/api/embeddings", {}, 400, "prompt"),
        ("/api/embeddings", {"prompt": ["a"]}, 400, "prompt"),
        ("/api/embeddings", {"prompt": "a", "input": "a"}, 400, "input"),
    ],
)
def test_ollama_refuses_by_name(server, path, fields, status, word):
    answer = ollama(server, path, {"model": "tiny", **fields}, status)
    assert answer.keys() == {"error"} and word in answer["error"]


def test_ollama_refuses_a_model_that_generates(generating):
    answer = ollama(generating, "/api/embed", {"model": "tiny", "input": "a"}, 400)
    assert "gives no embeddings" in answer["error"]
