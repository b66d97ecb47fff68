"""A model file that somebody cuts while it is used where it is mapped: its requests fail, and nothing else does."""

import os
import shutil

import pytest

import zinc_rt
from server_process import serving
from zinc_rt import errors


@pytest.fixture
def copy(tiny_model, tmp_path):
    return shutil.copy(tiny_model, tmp_path / "copy.gguf")


def test_requests_of_the_model_fail_and_the_process_goes_on(tiny_model, copy):
    with zinc_rt.Engine(copy, repack=False, max_slots=2) as cut, zinc_rt.Engine(tiny_model, max_slots=2) as other:
        want = cut.generate("the thin", max_tokens=4, ignore_eos=True).token_ids
        ids = cut.tokenize("the thin")
        os.truncate(copy, os.path.getsize(copy) // 2)
        for _ in range(4):
            with pytest.raises(errors.ZincError):
                cut.generate("another text", max_tokens=4)
        with pytest.raises(errors.Corrupt, match=r"copy\.gguf was cut while it was in use: \d+ bytes were there, \d+"):
            cut.logits(ids)
        assert other.generate("the thin", max_tokens=4, ignore_eos=True).token_ids == want


def test_weights_that_were_copied_need_the_file_no_more(copy):
    with zinc_rt.Engine(copy, max_slots=2) as engine:
        want = engine.generate("the thin", max_tokens=4, ignore_eos=True).token_ids
        os.truncate(copy, 0)
        assert engine.generate("a thin", max_tokens=4, ignore_eos=True).token_ids
        assert engine.generate("the thin", max_tokens=4, ignore_eos=True).token_ids == want


def test_a_server_serves_its_other_models(tiny_model, copy, tmp_path):
    config = tmp_path / "zinc.toml"
    config.write_text(f'[[models]]\npath = "{tiny_model}"\nid = "whole"\n[[models]]\npath = "{copy}"\nid = "cut"\n')
    with serving("--config", config, "--no-repack", "--max-slots", 2, log_path=tmp_path / "log") as server:

        def ask(model, prompt):
            body = {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0}
            return server.request("POST", "/v1/completions", body)

        want = ask("whole", "the thin")[2]["choices"][0]["text"]
        assert ask("cut", "the thin")[2]["choices"][0]["text"] == want
        os.truncate(copy, os.path.getsize(copy) // 2)
        for i in range(8):  # more than the failures of a device after which a server ends
            assert ask("cut", f"{i} other")[0] == 500
        assert ask("whole", "the thin")[2]["choices"][0]["text"] == want
        assert server.request("GET", "/readyz")[0] == 200
        assert "copy.gguf was cut while it was in use" in (tmp_path / "log").read_text()
