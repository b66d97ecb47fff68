"""The llama family against independent float logits, and a real model against another engine's output."""

import json

import numpy as np
import pytest

import zinc_rt

BASE = [
    "llama_spm-f32",
    "llama_spm-f16",
    "llama_spm-bf16",
    "llama_k-f16",
    "llama3_tied_rope-f16",
    "mistral-f32",
    "mistral_swa-f32",
    "llama_spm_full-f16",
]
QUANTIZED = [f"llama_k-{q}" for q in ("Q4_0", "Q4_1", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0")]


@pytest.mark.parametrize("name", BASE)
@pytest.mark.parametrize("prompt", ["p7", "p70"])
def test_every_position_matches_the_float_reference(fixtures, name, prompt):
    ref = np.load(fixtures / "ref" / f"{name.rsplit('-', 1)[0]}.npz")
    ids = np.concatenate([ref[f"{prompt}/prompt"], ref[f"{prompt}/greedy"]]).tolist()
    with zinc_rt.Engine(fixtures / "models" / f"{name}.gguf", activations="f32") as engine:
        whole = engine.logits(ids)
        assert np.abs(whole[ref[f"{prompt}/pos"]] - ref[f"{prompt}/hf_logits"]).max() <= 2e-4
        for chunk in (1, 7, 16, 64):
            assert (engine.logits(ids, chunk=chunk) == whole).all()
        n = len(ref[f"{prompt}/prompt"])
        got = engine.tenant("t").session().generate(token_ids=ids[:n], max_tokens=24, ignore_eos=True)
        assert got.token_ids == ref[f"{prompt}/greedy"].tolist()
    with zinc_rt.Engine(fixtures / "models" / f"{name}.gguf", activations="f32", fusion="0") as engine:
        assert (engine.logits(ids) == whole).all()


@pytest.mark.parametrize("name", ["llama_spm-f32", "mistral-f32", "mistral_swa-f32"])
def test_f32_models_need_no_options(fixtures, name):
    ref = np.load(fixtures / "ref" / f"{name.rsplit('-', 1)[0]}.npz")
    with zinc_rt.Engine(fixtures / "models" / f"{name}.gguf") as engine:
        ids = np.concatenate([ref["p70/prompt"], ref["p70/greedy"]]).tolist()
        assert np.abs(engine.logits(ids)[ref["p70/pos"]] - ref["p70/hf_logits"]).max() <= 2e-4


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_models(fixtures, name):
    ref = np.load(fixtures / "ref" / f"{name}.npz")
    ids = ref["p70/prompt"].tolist()
    exact = ref["p70/exact_logits"]
    path = fixtures / "models" / f"{name}.gguf"
    with zinc_rt.Engine(path, activations="f32") as engine:
        assert np.abs(engine.logits(ids) - exact).max() <= 1e-3
    with zinc_rt.Engine(path) as engine, zinc_rt.Engine(path, fusion="0") as unfused:
        ours = engine.logits(ids)
        assert np.abs(ours - exact).mean() <= 0.08  # the other engine's int8 activations: 0.03 to 0.08
        for chunk in (1, 7, 16, 64):
            assert (engine.logits(ids, chunk=chunk) == ours).all()
        assert (unfused.logits(ids) == ours).all()


@pytest.fixture(scope="module")
def smollm2(fixtures):
    return json.loads((fixtures / "smollm2" / "smollm2.json").read_text())["prompts"]


def test_smollm2_ids_and_last_logits(fixtures, smollm2, demo_model):
    ref = np.load(fixtures / "smollm2" / "smollm2_last_logits.npz")
    with zinc_rt.Engine(demo_model) as engine:
        for prompt in smollm2:
            assert engine.tokenize(prompt["text"]) == prompt["ids"], prompt["name"]
            ours = engine.logits(prompt["ids"], which="last")[0]
            exact = ref[f"{prompt['name']}/exact_last_logits"]
            assert np.corrcoef(ours, exact)[0, 1] > 0.999, prompt["name"]
            assert np.abs(ours - exact).max() <= 1.0, prompt["name"]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(8))
def test_smollm2_greedy_tokens(smollm2, demo_model, index):
    prompt = smollm2[index]
    wanted = prompt["exact_greedy64"]
    with zinc_rt.Engine(demo_model, activations="f32", max_context=512) as engine:
        session = engine.tenant("t").session()
        got = session.generate(token_ids=prompt["ids"], max_tokens=64, ignore_eos=True).token_ids
        for i, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
            if ours != theirs:
                row = engine.logits(prompt["ids"] + got[:i], which="last")[0]
                assert row[ours] - row[theirs] < 0.01, f"token {i}: {ours} for {theirs}"
                break
