"""Reranking and scores: a random cross-encoder against numpy, the same bits alone and among others, every path's shape,
the cosine of a model that embeds, and what is refused."""

import concurrent.futures
import random
import subprocess

import numpy as np
import pytest

import bert_gguf
import bert_oracle
import gguf_file
import tiny_bert
import zinc_rt
from server_process import PROGRAM, serving
from zinc_rt import errors

# Of the largest difference from numpy's float64.
CLOSE = 1e-5
QUERY = "the cat sat"
DOCUMENTS = [
    "on the mat",
    "hello, world! hello-world",
    "a",
    "Café naïve 中国 unable 123.5",
    "the cats sitting on mats " * 8,
]
RERANK = ["/v1/rerank", "/v2/rerank", "/rerank"]
SCORE = ["/v1/score", "/score"]


def ask(server, path, body, wanted=200):
    code, _, answer = server.request("POST", path, body)
    assert code == wanted, answer
    return answer


def relevances(server, query, documents, path="/v1/rerank", **more):
    """By index."""
    results = ask(server, path, {"query": query, "documents": documents, **more})["results"]
    assert sorted(each["index"] for each in results) == list(range(len(documents)))
    return [each["relevance_score"] for each in sorted(results, key=lambda each: each["index"])]


class CrossEncoder:
    """A folder of random weights, its file, and what numpy makes of the folder."""

    def __init__(self, folder, seed=0):
        tiny_bert.write_cross_encoder(folder, seed)
        self.path = folder / "model.gguf"
        bert_gguf.convert(folder, self.path, "f32")
        self.tensors = bert_gguf.read_safetensors(folder / "model.safetensors")
        self.config = bert_gguf.read_config(folder)
        self.vocabulary = {token: i for i, token in enumerate(bert_gguf.vocabulary(folder))}

    def wanted(self, query, document):
        first, second = (bert_oracle.tokens(text, self.vocabulary) for text in (query, document))
        return bert_oracle.score(first, second, self.tensors, self.config)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return CrossEncoder(tmp_path_factory.mktemp("cross") / "tiny")


@pytest.fixture(scope="module")
def server(model):
    with serving(model.path, "--id", "tiny", "--max-slots", 8) as server:
        yield server


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedding") / "tiny"
    tiny_bert.write(folder, "mean")
    bert_gguf.convert(folder, folder / "model.gguf", "f32")
    with serving(folder / "model.gguf", "--id", "tiny", "--max-slots", 8) as server:
        yield server


def test_scores_are_those_of_numpy(server, model):
    wanted = [model.wanted(QUERY, document) for document in DOCUMENTS]
    assert max(wanted) - min(wanted) > 0.05
    assert np.abs(np.subtract(relevances(server, QUERY, DOCUMENTS), wanted)).max() < CLOSE
    # The order of the texts counts: the second one's tokens have a type of their own.
    assert abs(relevances(server, DOCUMENTS[0], [QUERY])[0] - model.wanted(DOCUMENTS[0], QUERY)) < CLOSE


def test_nobodys_bits_depend_on_who_else_is_there(server):
    rng = random.Random(1)
    texts = [" ".join(rng.choices(tiny_bert.WORDS[:9], k=1 + i * 7 % 60)) for i in range(64)]
    alone = [relevances(server, QUERY, [text])[0] for text in texts]
    assert len(set(alone)) > 50
    for n in (2, 5, 16, 64):
        assert relevances(server, QUERY, texts[:n]) == alone[:n]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: relevances(server, QUERY, [text])[0], texts)) == alone


@pytest.mark.parametrize("path", RERANK)
def test_the_shape_of_a_rerank(server, path):
    answer = ask(server, path, {"model": "tiny", "query": QUERY, "documents": DOCUMENTS})
    assert set(answer) == {"id", "model", "results", "usage"}
    assert answer["id"].startswith("rerank-") and answer["model"] == "tiny"
    scores = [each["relevance_score"] for each in answer["results"]]
    assert scores == sorted(scores, reverse=True) and all(0 < score < 1 for score in scores)
    assert all(set(each) == {"index", "relevance_score"} for each in answer["results"])
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 5 * len(DOCUMENTS)
    objects = [{"text": text} for text in DOCUMENTS]
    best = ask(server, path, {"query": QUERY, "documents": objects, "top_n": 2, "return_documents": True, "user": "u"})
    assert [each["index"] for each in best["results"]] == [each["index"] for each in answer["results"][:2]]
    assert all(each["document"] == objects[each["index"]] for each in best["results"])
    assert len(ask(server, path, {"query": QUERY, "documents": DOCUMENTS, "top_n": 99})["results"]) == len(DOCUMENTS)


def test_equal_scores_keep_the_order_of_the_documents(server):
    results = ask(server, "/v1/rerank", {"query": QUERY, "documents": ["the mat"] * 5})["results"]
    assert [each["index"] for each in results] == list(range(5))


@pytest.mark.parametrize("path", SCORE)
def test_the_shape_of_scores(server, path):
    wanted = relevances(server, QUERY, DOCUMENTS)
    answer = ask(server, path, {"model": "tiny", "text_1": QUERY, "text_2": DOCUMENTS})
    assert set(answer) == {"id", "object", "created", "model", "data", "usage"}
    assert answer["object"] == "list" and answer["id"].startswith("score-")
    assert [each["index"] for each in answer["data"]] == list(range(len(DOCUMENTS)))
    assert all(set(each) == {"index", "object", "score"} for each in answer["data"])
    assert [each["score"] for each in answer["data"]] == wanted
    for firsts, seconds in (([QUERY], DOCUMENTS), ([QUERY] * len(DOCUMENTS), DOCUMENTS)):
        data = ask(server, path, {"text_1": firsts, "text_2": seconds})["data"]
        assert [each["score"] for each in data] == wanted
    assert ask(server, path, {"text_1": QUERY, "text_2": DOCUMENTS[0]})["data"][0]["score"] == wanted[0]


def test_a_model_that_embeds_gives_the_cosine(embedding):
    answer = ask(embedding, "/v1/embeddings", {"input": [QUERY, *DOCUMENTS]})
    rows = np.array([each["embedding"] for each in answer["data"]], np.float32).astype(np.float64)
    wanted = rows[1:] @ rows[0]
    assert np.abs(relevances(embedding, QUERY, DOCUMENTS) - wanted).max() < 1e-12
    data = ask(embedding, "/v1/score", {"text_1": DOCUMENTS, "text_2": DOCUMENTS[::-1]})["data"]
    assert np.allclose([each["score"] for each in data], (rows[1:] * rows[:0:-1]).sum(1), atol=1e-12)
    assert abs(ask(embedding, "/score", {"text_1": "a", "text_2": "a"})["data"][0]["score"] - 1) < 1e-6


GOOD = {"query": QUERY, "documents": DOCUMENTS}
PAIR = {"text_1": QUERY, "text_2": DOCUMENTS}
REFUSED = [
    ("/v1/rerank", {**GOOD, "query": None}, "query", "missing or empty"),
    ("/v1/rerank", {**GOOD, "query": ["a"]}, "query", "a string wanted"),
    ("/v1/rerank", {**GOOD, "documents": None}, "documents", "missing"),
    ("/v1/rerank", {**GOOD, "documents": []}, "documents", "0 texts, 1 to 2048 allowed"),
    ("/v1/rerank", {**GOOD, "documents": ["a"] * 2049}, "documents", "2049 texts, 1 to 2048 allowed"),
    ("/v1/rerank", {**GOOD, "documents": "a"}, "documents", "a list of texts wanted"),
    ("/v1/rerank", {**GOOD, "documents": ["a", ""]}, "documents", 'documents[1]: "" is given'),
    ("/v1/rerank", {**GOOD, "documents": [{"text": "a", "title": "b"}]}, "documents", "no other field"),
    ("/v1/rerank", {**GOOD, "top_n": 0}, "top_n", "0 is given"),
    ("/v1/rerank", {**GOOD, "return_documents": 1}, "return_documents", "1 is given"),
    ("/v2/rerank", {**GOOD, "max_tokens_per_doc": 9}, "max_tokens_per_doc", "no such field"),
    ("/v1/rerank", {**GOOD, "model": "other"}, "model", "other"),
    ("/v1/score", {**PAIR, "text_1": None}, "text_1", "missing"),
    ("/v1/score", {**PAIR, "text_1": ["a", "b"]}, "text_2", "5 texts for 2 of text_1"),
    ("/v1/score", {**PAIR, "text_2": [3]}, "text_2", "a text that is not empty"),
    ("/v1/score", {**PAIR, "truncate_prompt_tokens": 9}, "truncate_prompt_tokens", "no such field"),
    ("/v1/rerank", {**GOOD, "documents": ["a", "the " * 200]}, "documents", "documents[1]"),
    ("/v1/score", {**PAIR, "text_2": "the " * 200}, "text_2", "maximum context length is 128"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[2]}: {case[3]}")
def test_what_is_wrong_is_refused_by_name(server, case):
    path, body, param, words = case
    code, _, answer = server.request("POST", path, body)
    assert code == (404 if param == "model" else 400), answer
    assert set(answer["error"]) >= {"message", "type", "param", "code"}
    assert words in answer["error"]["message"]
    assert answer["error"]["param"] == param


def test_the_longest_pair_and_one_too_long(server, model):
    longest = "the " * (tiny_bert.CONTEXT - 3 - 3)
    assert abs(relevances(server, "the the the", [longest])[0] - model.wanted("the the the", longest)) < CLOSE
    answer = ask(server, "/v1/rerank", {"query": "the the the", "documents": [longest + "the"]}, 400)
    assert answer["error"]["code"] == "context_length_exceeded"
    for number in (tiny_bert.CONTEXT, tiny_bert.CONTEXT + 1):
        assert str(number) in answer["error"]["message"]


def test_a_model_that_scores_does_nothing_else(server):
    shown = server.request("GET", "/v1/models/tiny")[2]
    assert (shown["capabilities"], shown["pooling"]) == (["rerank"], "rank")
    assert "/v1/rerank" in ask(server, "/v1/completions", {"prompt": "the", "max_tokens": 1}, 400)["error"]["message"]
    assert "/v1/rerank" in ask(server, "/v1/embeddings", {"input": "the"}, 400)["error"]["message"]


def test_a_model_that_generates_scores_nothing(tiny_model):
    with serving(tiny_model, "--id", "tiny") as server:
        for path in RERANK:
            answer = ask(server, path, GOOD, 400)
            assert "generates and scores no texts" in answer["error"]["message"] and answer["error"]["param"] == "model"
        for path in SCORE:
            assert "generates and scores no texts" in ask(server, path, PAIR, 400)["error"]["message"]


def test_the_ledger_counts_prompt_tokens(server):
    def counted():
        sums = server.request("GET", "/v1/tenants/me/usage")[2]
        return sums["prompt_tokens"], sums["requests"]

    tokens, requests = counted()
    usage = ask(server, "/v1/rerank", GOOD)["usage"]
    assert counted() == (tokens + usage["prompt_tokens"], requests + 1)


def test_python(server, model):
    with zinc_rt.Engine(model.path, max_slots=4) as engine:
        assert engine.rerank(QUERY, DOCUMENTS) == relevances(server, QUERY, DOCUMENTS)
        assert engine.rerank(QUERY, []) == []
        with pytest.raises(errors.InvalidArgument, match="scores pairs of texts"):
            engine.embed("the")
    with zinc_rt.Engine(model.path, pooling="cls") as engine:
        assert engine.embed("the").shape == (1, tiny_bert.DIM)
        with pytest.raises(errors.InvalidArgument, match="scores no pairs"):
            engine.rerank(QUERY, DOCUMENTS)


# The tensors of a head as files have them, from those of pooler and classifier.
HEADS = {
    "a dense layer and an output": lambda head: head,
    "an output alone": lambda head: {name: head[name] for name in head if name.startswith("cls.output")},
    "an output as a vector": lambda head: {"cls.output.weight": head["cls.output.weight"][0]},
    "cls alone": lambda head: {name.replace(".output", ""): head[name] for name in head if "output" in name},
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(tmp_path, name, monkeypatch):
    write, heads = gguf_file.write, {}

    def write_head(out, keys, tensors):
        head = {
            tensor: np.frombuffer(tensors.pop(tensor)[2], np.float32).reshape(shape)
            for tensor, shape in ((tensor, tensors[tensor][0]) for tensor in list(tensors) if tensor.startswith("cls"))
        }
        heads.update(HEADS[name](head))
        tensors |= {each: (values.shape, gguf_file.F32, values.tobytes()) for each, values in heads.items()}
        write(out, keys, tensors)

    monkeypatch.setattr(gguf_file, "write", write_head)
    model = CrossEncoder(tmp_path / "tiny")
    if "cls.output.weight" not in heads or "cls.weight" not in heads:
        model.tensors = {each: values for each, values in model.tensors.items() if "pooler" not in each}
    if not any(each.endswith(".bias") for each in heads):
        model.tensors["classifier.bias"] = np.zeros(1, np.float32)
    with zinc_rt.Engine(model.path) as engine:
        wanted = [model.wanted(QUERY, document) for document in DOCUMENTS]
        assert np.abs(np.subtract(engine.rerank(QUERY, DOCUMENTS), wanted)).max() < CLOSE


def test_matrices_of_16_bits_are_near(tmp_path):
    model = CrossEncoder(tmp_path / "tiny")
    bert_gguf.convert(tmp_path / "tiny", tmp_path / "f16.gguf", "f16")
    with zinc_rt.Engine(tmp_path / "f16.gguf") as engine:
        wanted = [model.wanted(QUERY, document) for document in DOCUMENTS]
        assert np.abs(np.subtract(engine.rerank(QUERY, DOCUMENTS), wanted)).max() < 5e-3


def test_a_file_without_a_head_is_refused(tmp_path):
    tiny_bert.write(tmp_path / "tiny", "mean")
    bert_gguf.convert(tmp_path / "tiny", tmp_path / "model.gguf")
    command = [*PROGRAM, "info", str(tmp_path / "model.gguf"), "--pooling", "rank"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert refused.returncode != 0 and "cls.output.weight" in refused.stderr


def test_several_labels_are_refused(tmp_path):
    tiny_bert.write_cross_encoder(tmp_path / "tiny")
    tensors = tiny_bert.cross_encoder_tensors()
    tensors["classifier.weight"] = np.zeros((3, tiny_bert.DIM), np.float32)
    tiny_bert.write_safetensors(tmp_path / "tiny" / "model.safetensors", tensors)
    with pytest.raises(ValueError, match="3 labels, 1 wanted"):
        bert_gguf.convert(tmp_path / "tiny", tmp_path / "model.gguf")
