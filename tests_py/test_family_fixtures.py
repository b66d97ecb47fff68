"""Families and their options that the reference fixtures leave out, against stored logits of an independent
implementation (make_family_fixtures.py)."""

import pathlib

import numpy as np
import pytest

import zinc_rt

FOLDER = pathlib.Path(__file__).resolve().parent / "data" / "families"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.gguf")))
def test_logits_and_greedy_tokens(name):
    ref = np.load(FOLDER / f"{name}.npz")
    ids, n_prompt = ref["ids"].tolist(), int(ref["n_prompt"])
    with zinc_rt.Engine(FOLDER / f"{name}.gguf", kv_dtype="f32") as engine:
        whole = engine.logits(ids)
        assert np.abs(whole[-len(ref["logits"]) :] - ref["logits"]).max() <= 2e-4
        for chunk in (1, 7, 16):
            assert (engine.logits(ids, chunk=chunk) == whole).all()
        got = (
            engine.tenant("t")
            .session()
            .generate(token_ids=ids[:n_prompt], max_tokens=len(ids) - n_prompt, ignore_eos=True)
        )
        assert got.token_ids == ids[n_prompt:]


def test_there_are_fixtures():
    assert len(list(FOLDER.glob("*.gguf"))) >= 3
