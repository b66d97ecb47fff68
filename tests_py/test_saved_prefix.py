"""A saved prefix gives the bits that computing it gives; a file that does not fit is refused by name."""

import json

import pytest

import synth_gguf
import tiny_model as tiny
import zinc_rt
from tenant_helpers import HASHED
from zinc_rt import errors

PREFIX = [(7 * i) % 300 for i in range(70)]
PROMPT = PREFIX + [5, 6, 7]


@pytest.fixture
def saved(tiny_model, tmp_path):
    path = tmp_path / "prefix.zrp"
    with zinc_rt.Engine(tiny_model, max_slots=4) as engine:
        assert engine.tenant("a").session().save(path, token_ids=PREFIX) == 64
    assert path.stat().st_mode & 0o777 == 0o600  # it holds texts
    return path


@pytest.mark.parametrize("kv_dtype", ["f16", "f32", "k8v4", "k4v4", "i16"])
def test_a_loaded_prefix_has_the_bits(tmp_path, kv_dtype):
    path, model = tmp_path / "prefix", tmp_path / "heads_of_64.gguf"
    assert synth_gguf.main(["tiny-llama", "-o", str(model), "--types", "F16", "--width", "256"]) == 0
    with zinc_rt.Engine(model, max_slots=4, kv_dtype=kv_dtype) as engine:
        session = engine.tenant("a").session()
        wanted = session.generate(token_ids=PROMPT, max_tokens=20, **HASHED)
        assert session.save(path, token_ids=PREFIX) == 64
    with zinc_rt.Engine(model, max_slots=2, kv_dtype=kv_dtype, chunk_cap=8, threads=1) as engine:
        session = engine.tenant("b").session()
        assert session.load(path) == 64
        got = session.generate(token_ids=PROMPT, max_tokens=20, **HASHED)
        assert got.usage.cached_tokens == 64
        assert got.token_ids == wanted.token_ids and got.logits_hashes == wanted.logits_hashes
        # Once more: the cache has it already.
        assert session.load(path) == 64
        assert session.generate(token_ids=PROMPT, max_tokens=20, **HASHED).logits_hashes == wanted.logits_hashes


def test_it_is_the_tenants_alone(tiny_model, saved):
    with zinc_rt.Engine(tiny_model) as engine:
        engine.tenant("a").session().load(saved, cache_salt="s")

        def cached(tenant, **options):
            session = engine.tenant(tenant).session()
            return session.generate(token_ids=PROMPT, max_tokens=1, **options).usage.cached_tokens

        assert cached("b") == 0
        assert cached("a") == 0
        assert cached("a", cache_salt="s") == 64
        assert engine.tenant("a").flush_prefix_cache() >= 4


def test_pages_come_back(tiny_model, saved):
    with zinc_rt.Engine(tiny_model, kv_pages=32, max_slots=2) as engine:
        session = engine.tenant("a").session()
        for _ in range(40):
            session.load(saved)
            session.save(saved, token_ids=PREFIX)
        stats = engine.stats()
        assert stats["pages_free"] == 32 and stats["pages_cached"] == 4 and stats["internal_errors"] == 0
        assert session.generate(token_ids=[1] * 400, max_tokens=20, ignore_eos=True).usage.completion_tokens == 20


def test_a_text_and_messages_can_be_saved(tiny_model, tmp_path):
    with zinc_rt.Engine(tiny_model) as engine:
        session = engine.tenant("a").session(system="the thin an the thin an the thin an")
        n = session.save(tmp_path / "text", "the thin in an " * 10)
        assert n % 16 == 0 and n > 0
        n = session.save(tmp_path / "chat", messages=[{"role": "user", "content": "the"}])
        session.load(tmp_path / "chat")
        completion = session.generate(messages=[{"role": "user", "content": "the"}], max_tokens=1)
        assert completion.usage.cached_tokens == n > 0
        with pytest.raises(errors.InvalidArgument, match="shorter than a page of 16 tokens"):
            session.save(tmp_path / "short", token_ids=[1, 2, 3])
        assert not (tmp_path / "short").exists()


def refused(engine, path, error, words):
    with pytest.raises(error, match=words):
        engine.tenant("a").session().load(path)
    assert engine.stats()["pages_cached"] == 0 and engine.stats()["slots_free"] == engine.stats()["slots"]


def test_what_does_not_fit_is_refused_by_name(tiny_model, saved, tmp_path):
    other = tmp_path / "other.gguf"
    tiny.write(other, seed=1)
    with zinc_rt.Engine(other) as engine:
        refused(engine, saved, errors.InvalidArgument, 'model is "[0-9a-f]{32}", "[0-9a-f]{32}" wanted')
    for options, words in (
        ({"kv_dtype": "f32"}, 'kv_dtype is "i16", "f32" wanted'),
        ({"activations": "f32", "kv_dtype": "i16"}, 'activations is "int8", "f32" wanted'),
        ({"tier": "null"}, 'tier is "t_(cpu|cuda)", "null" wanted'),
        ({"prefix_cache": False}, "prefix_cache"),
    ):
        with zinc_rt.Engine(tiny_model, **options) as engine:
            refused(engine, saved, errors.InvalidArgument, words)


def test_damage_is_found(tiny_model, saved, tmp_path):
    whole = saved.read_bytes()
    line = whole[: whole.index(b"\n") + 1]
    header = json.loads(line)
    path = tmp_path / "damaged"
    with zinc_rt.Engine(tiny_model) as engine:
        refused(engine, tmp_path / "none", errors.NotFound, "none")
        for data, words in (
            (b"", "no saved prefix"),
            (b"GGUF" * 100, "no saved prefix"),
            (b"{}\n", "no saved prefix"),
            (whole[:-1], "bytes, "),
            (whole + b"x", "bytes, "),
            (line + b"x", "bytes, "),
            (json.dumps({**header, "n_tokens": 17}).encode() + b"\n", "17 tokens"),
            (json.dumps({**header, "n_tokens": -16}).encode() + b"\n", "0 tokens"),
            (json.dumps({**header, "n_tokens": 2**62}).encode() + b"\n", "tokens in pages"),
            (json.dumps({**header, "page_bytes": "x"}).encode() + b"\n", "pages of 0 bytes"),
        ):
            path.write_bytes(data)
            refused(engine, path, errors.Corrupt, words)
        for at in (len(line) + 3, len(whole) // 2, len(whole) - 3):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            refused(engine, path, errors.Corrupt, "checksum")


def test_models_with_recurrent_layers_say_so(hybrid_model, tmp_path):
    with zinc_rt.Engine(hybrid_model) as engine:
        with pytest.raises(errors.Unavailable, match="recurrent layers"):
            engine.tenant("a").session().save(tmp_path / "p", token_ids=PREFIX)
