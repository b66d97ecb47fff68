"""MLC folders: to them, from them, and that an engine runs them as it runs a GGUF file."""

import json
import shutil
import struct

import numpy as np
import pytest

import tiny_model as tiny
import zinc_rt
from test_cli import zinc

FAMILIES = [
    "llama_spm-f32",
    "llama_spm_full-f16",
    "llama3_tied_rope-f16",
    "mistral-f32",
    "mistral_swa-f32",
    "llama_k-Q4_0",
]
PHI3 = ["phi3-f32", "phi3_longrope-f16"]
FLOAT = {"activations": "f32", "kv_dtype": "f32"}


def convert(source, destination, *arguments):
    result = zinc("convert", source, destination, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def tiny_folder(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlc") / "tiny-q4f16_1-MLC"
    convert(tiny_model, folder)
    return folder


def test_a_folder_may_be_named_with_a_slash(tiny_model, tmp_path):
    convert(tiny_model, f"{tmp_path}/folder/")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.fixture(scope="module")
def demo_folder(demo_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlc") / "smollm2"
    summary = convert(demo_model, folder)
    assert summary["exact"] == 0 and summary["quantized"] == 211  # the file is Q4_1 and Q8_0
    return folder


def four_bit(name, values):
    """What q4f16_1 makes of a tensor, computed apart from the converter: (n - 7) * s, n and s of each 32 in a row."""
    if values.ndim == 1:
        return values
    groups = values.reshape(-1, 32)
    scale = (np.abs(groups).max(1, keepdims=True) / np.float32(7)).astype(np.float16).astype(np.float32)
    n = np.clip(np.floor(groups / scale + np.float32(7.5)), 0, 14)
    return ((n - 7) * scale).reshape(values.shape)


def test_weights_are_quantized_split_and_turned_right(tiny_model, tiny_folder, tmp_path):
    """Rows in a wrong place, a wrong half of a word or a wrong rotation would show in every logit."""
    tiny.write(tmp_path / "float.gguf", change=four_bit)
    tiny.write(tmp_path / "f16.gguf", change=lambda name, values: values)
    convert(tmp_path / "f16.gguf", tmp_path / "folder")
    ids = [(11 * i) % tiny.VOCAB for i in range(70)]
    with (
        zinc_rt.Engine(tmp_path / "float.gguf", **FLOAT) as wanted,
        zinc_rt.Engine(tmp_path / "folder", **FLOAT) as got,
    ):
        assert (got.logits(ids) == wanted.logits(ids)).all()


def change_f32_file(source, destination, change):
    """Rewrites the matrices of a GGUF file whose tensors are all f32, in place."""
    raw, at = bytearray(source.read_bytes()), 8

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize(form)
        return value

    def take_string():
        nonlocal at
        n = take("Q")
        at += n
        return bytes(raw[at - n : at]).decode(errors="replace")

    def skip_value(kind):
        if kind == 8:
            take_string()
        elif kind == 9:
            kind, n = take("I"), take("Q")
            for _ in range(n):
                skip_value(kind)
        else:
            take("BbHhIif?__Qqd"[kind])

    n_tensors, n_keys = take("Q"), take("Q")
    for _ in range(n_keys):
        take_string()
        skip_value(take("I"))
    tensors = []
    for _ in range(n_tensors):
        name = take_string()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        assert take("I") == 0, f"{name} is not f32"
        tensors.append((name, shape, take("Q")))
    data = at + -at % 32
    for name, shape, offset in tensors:
        values = np.frombuffer(raw, np.float32, int(np.prod(shape)), data + offset).reshape(shape)
        values[...] = change(name, values)
    destination.write_bytes(raw)


@pytest.mark.parametrize("name", ["llama_spm-f32", "mistral-f32", "mistral_swa-f32", "phi3-f32"])
def test_fixture_weights_are_quantized_split_and_turned_right(fixtures, tmp_path, name):
    source = fixtures / "models" / f"{name}.gguf"
    skip_unless_it_runs(source)

    def quantized(name, values):
        return four_bit(name, values) if values.ndim == 2 else values.astype(np.float16).astype(np.float32)

    change_f32_file(source, tmp_path / "float.gguf", quantized)
    convert(source, tmp_path / "folder")
    ids = [3 + (11 * i) % 400 for i in range(70)]
    with (
        zinc_rt.Engine(tmp_path / "float.gguf", **FLOAT) as wanted,
        zinc_rt.Engine(tmp_path / "folder", **FLOAT) as got,
    ):
        assert (got.logits(ids) == wanted.logits(ids)).all()


def skip_unless_it_runs(model):
    try:
        zinc_rt.Engine(model).close()
    except zinc_rt.errors.Unavailable as error:
        pytest.skip(f"this build does not run the model: {error}")


def test_a_folder_runs_like_the_file_made_of_it(tiny_folder, tmp_path):
    summary = convert(tiny_folder, tmp_path / "back.gguf")
    assert summary["to"] == "gguf" and summary["bytes"] == (tmp_path / "back.gguf").stat().st_size
    ids = [(7 * i) % tiny.VOCAB for i in range(90)]
    for mmap in (True, False):
        with (
            zinc_rt.Engine(tiny_folder, mmap=mmap) as folder,
            zinc_rt.Engine(tmp_path / "back.gguf", mmap=mmap) as file,
        ):
            assert (folder.logits(ids) == file.logits(ids)).all()
            ours, theirs = folder.model_card(), file.model_card()
            assert ours["weight_bytes_by_format"] == theirs["weight_bytes_by_format"]
            assert ours["name"] == theirs["name"] == "tiny-q4f16_1-MLC"
            message = [{"role": "user", "content": "the thin"}]
            one = folder.tenant("t").session().generate(messages=message, max_tokens=8)
            assert one.token_ids == file.tenant("t").session().generate(messages=message, max_tokens=8).token_ids


def test_the_second_folder_is_the_first(tiny_folder, tmp_path):
    """Q4_0 holds what q4f16_1 held, so a second round changes no bit of a weight."""
    convert(tiny_folder, tmp_path / "back.gguf")
    summary = convert(tmp_path / "back.gguf", tmp_path / "again")
    assert summary["quantized"] == 0 and summary["exact"] == 1 + 7 * tiny.LAYERS
    names = ["ndarray-cache.json", "tokenizer.json", "tokenizer_config.json", "mlc-chat-config.json"]
    names += [shard["dataPath"] for shard in json.loads((tiny_folder / names[0]).read_text())["records"]]
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tiny_folder / name).read_bytes(), name


def test_the_index_is_what_mlc_writes(tiny_folder):
    index = json.loads((tiny_folder / "ndarray-cache.json").read_text())
    records = {r["name"]: r for shard in index["records"] for r in shard["records"]}
    assert index["metadata"]["ParamSize"] == len(records)
    rows = (tiny.HEADS + 2 * tiny.KV_HEADS) * tiny.HEAD_DIM
    assert records["model.layers.1.self_attn.qkv_proj.q_weight"]["shape"] == [rows, tiny.DIM // 8]
    assert records["model.layers.1.self_attn.qkv_proj.q_scale"]["shape"] == [rows, tiny.DIM // 32]
    assert records["model.layers.0.mlp.gate_up_proj.q_weight"]["dtype"] == "uint32"
    assert records["model.norm.weight"]["dtype"] == "float16"
    assert "lm_head.q_weight" not in records  # tied
    config = json.loads((tiny_folder / "mlc-chat-config.json").read_text())
    assert config["model_type"] == "llama" and config["quantization"] == "q4f16_1"
    assert config["model_config"]["tie_word_embeddings"] is True
    assert config["tokenizer_files"] == ["tokenizer.json", "tokenizer_config.json"]


def texts(fixtures):
    found = [
        case["text"]
        for path in sorted((fixtures / "tok").glob("*.json"))
        for case in json.loads(path.read_text())["cases"]
    ]
    found += [p["text"] for p in json.loads((fixtures / "smollm2" / "smollm2.json").read_text())["prompts"]]
    words = [
        "the",
        " quick",
        "fox's",
        "\t",
        "\n\n",
        "12345",
        "école",
        "日本語",
        "🎉👍🏽",
        "<s>",
        "</s>",
        "<|end|>",
        "▁",
        "\u00a0",
        "__x__",
        "();",
    ]
    rng = np.random.default_rng(3)
    for _ in range(400):
        pick = rng.integers(len(words), size=rng.integers(1, 12))
        gaps = rng.choice([0, 1, 1, 2, 3, 17, 40], size=len(pick))
        found.append("".join(words[i] + " " * gap for i, gap in zip(pick, gaps, strict=True)))
    found += [" " * n + "x" * (n % 2) for n in range(1, 70)]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("name", FAMILIES + PHI3)
def test_the_tokenizer_keeps_every_id(fixtures, tmp_path, name):
    source = fixtures / "models" / f"{name}.gguf"
    convert(source, tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "back.gguf")
    tokenizers = [zinc_rt.Tokenizer(str(path)) for path in (source, tmp_path / "folder", tmp_path / "back.gguf")]
    for text in texts(fixtures):
        for special in (True, False):
            wanted = tokenizers[0].encode(text, special, True)
            assert tokenizers[1].encode(text, special, True) == wanted, text
            assert tokenizers[2].encode(text, special, True) == wanted, text
    assert tokenizers[1].decode(wanted) == tokenizers[0].decode(wanted)


@pytest.mark.parametrize("name", FAMILIES)
def test_tokenizer_json_is_as_others_read_it(fixtures, tmp_path, name):
    hf = pytest.importorskip(
        "tokenizers", reason="the PyPI package tokenizers, another reader of tokenizer.json, is absent"
    )
    convert(fixtures / "models" / f"{name}.gguf", tmp_path / "folder")
    ours, theirs = (
        zinc_rt.Tokenizer(str(tmp_path / "folder")),
        hf.Tokenizer.from_file(str(tmp_path / "folder" / "tokenizer.json")),
    )
    for text in texts(fixtures):
        assert theirs.encode(text, add_special_tokens=True).ids == ours.encode(text, True, True), text


@pytest.mark.parametrize("name", FAMILIES)
def test_families_run_from_folder_and_file(fixtures, tmp_path, name):
    run_both_ways(
        fixtures / "models" / f"{name}.gguf",
        fixtures / "ref" / f"{name.removesuffix('-f32').removesuffix('-f16')}.npz",
        tmp_path,
    )


@pytest.mark.parametrize("name", PHI3)
def test_phi3_runs_from_folder_and_file(fixtures, tmp_path, name):
    source = fixtures / "models" / f"{name}.gguf"
    skip_unless_it_runs(source)
    run_both_ways(source, fixtures / "ref" / f"{name.rsplit('-', 1)[0]}.npz", tmp_path)


def run_both_ways(source, reference, tmp_path):
    convert(source, tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "back.gguf")
    ids = np.load(reference)["p70/prompt"].tolist()
    with (
        zinc_rt.Engine(source, **FLOAT) as exact,
        zinc_rt.Engine(tmp_path / "folder", **FLOAT) as folder,
        zinc_rt.Engine(tmp_path / "back.gguf", **FLOAT) as file,
    ):
        wanted, got = exact.logits(ids), folder.logits(ids)
        assert (got == file.logits(ids)).all()
        # These models are small and random, and their logits near each other; with rows out of order it is near 0.
        correlation = np.corrcoef(wanted.ravel(), got.ravel())[0, 1]
        print(f"correlation {correlation:.3f}")
        assert correlation > 0.8


def test_a_q4_0_file_keeps_its_values(fixtures, tmp_path):
    """All matrices of this file but the output are Q4_0; the hidden states after the layers are the same bits."""
    source = fixtures / "models" / "llama_k-Q4_0.gguf"
    assert convert(source, tmp_path / "folder")["exact"] == 15
    with zinc_rt.Engine(source) as exact, zinc_rt.Engine(tmp_path / "folder") as folder:
        ids = list(range(3, 60))
        formats = exact.model_card()["weight_bytes_by_format"]
        assert set(formats) == {"f32", "q4_0", "q6_k"}
        # Norms become f16: what the source's f32 norms lose is all that differs.
        assert np.abs(exact.hidden(ids, 1) - folder.hidden(ids, 1)).max() < 0.05


def test_smollm2_within_the_error_of_four_bits(demo_model, demo_folder, fixtures):
    prompt = json.loads((fixtures / "smollm2" / "smollm2.json").read_text())["prompts"][1]
    with zinc_rt.Engine(demo_model, max_context=512) as source, zinc_rt.Engine(demo_folder, max_context=512) as folder:
        assert folder.tokenize(prompt["text"]) == prompt["ids"]
        wanted, got = source.logits(prompt["ids"]), folder.logits(prompt["ids"])
    correlation = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(wanted, got, strict=True)])
    print(f"correlation {correlation:.4f}, mean difference {np.abs(wanted - got).mean():.3f}")
    assert correlation > 0.85  # 0.891 measured (docs/notes/agreement.md)


def test_smollm2_back_to_gguf_keeps_the_bits(demo_model, demo_folder, fixtures, tmp_path):
    convert(demo_folder, tmp_path / "back.gguf")
    prompts = json.loads((fixtures / "smollm2" / "smollm2.json").read_text())["prompts"]
    with (
        zinc_rt.Engine(demo_folder, max_context=512) as folder,
        zinc_rt.Engine(tmp_path / "back.gguf", max_context=512) as file,
        zinc_rt.Engine(demo_model, max_context=512) as source,
    ):
        for prompt in prompts:
            assert folder.tokenize(prompt["text"]) == file.tokenize(prompt["text"]) == prompt["ids"]
        ids = prompts[2]["ids"][:24]
        assert (folder.logits(ids) == file.logits(ids)).all()
        message = [{"role": "user", "content": "Hi"}]
        assert folder.apply_template(message) == source.apply_template(message)


def test_refusals(tiny_model, tiny_folder, tmp_path):
    assert zinc("convert", tiny_model, tiny_folder).returncode == 3  # something is there
    assert zinc("convert", tmp_path / "none.gguf", tmp_path / "x").returncode == 3
    assert zinc("convert", tiny_folder, tmp_path / "x", "--to", "onnx").returncode == 2
    out = tmp_path / "out.gguf"
    out.write_bytes(b"mine")
    refused = zinc("convert", tiny_folder, out)
    assert refused.returncode == 3 and "--force" in refused.stderr and out.read_bytes() == b"mine"
    assert zinc("convert", tiny_folder, out, "--force", "--progress").returncode == 0
    assert zinc("info", out).returncode == 0


def test_gguf_to_gguf_is_a_copy(tiny_model, tmp_path):
    convert(tiny_model, tmp_path / "copy.gguf", "--to", "gguf")
    with zinc_rt.Engine(tiny_model) as one, zinc_rt.Engine(tmp_path / "copy.gguf") as other:
        assert (one.logits([1, 2, 3]) == other.logits([1, 2, 3])).all()


def test_mixed_index_and_shards(tiny_folder, tmp_path):
    """An index of one download with shards of another names the shard and both numbers."""
    broken = tmp_path / "broken"
    shutil.copytree(tiny_folder, broken)
    shard = broken / "params_shard_0.bin"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-64])
    with pytest.raises(
        zinc_rt.errors.Corrupt, match=f"params_shard_0.bin: {len(whole)} bytes by the index, {len(whole) - 64}"
    ):
        zinc_rt.Engine(broken)
    shard.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(
        zinc_rt.errors.Corrupt, match="params_shard_0.bin: MD5 [0-9a-f]{32} by the index, [0-9a-f]{32} there"
    ):
        zinc_rt.Engine(broken)
    shard.unlink()
    with pytest.raises(zinc_rt.errors.NotFound, match="params_shard_0.bin"):
        zinc_rt.Engine(broken)
    zinc_rt.Tokenizer(str(broken))  # needs no shard
