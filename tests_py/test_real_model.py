"""What the demo model must keep to: memory, time to open, one answer through all doors."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import zinc_rt

MEASURE = """
import json, re, sys, time
import zinc_rt
started = time.monotonic()
engine = zinc_rt.Engine(sys.argv[1], max_context=2048, max_slots=1)
opened = time.monotonic() - started
completion = engine.tenant("t").session().generate("Once upon a time " * 40, max_tokens=8)
# Not getrusage: its figure begins with what the process that started this one had in memory.
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
kv = engine.memory_plan()["kv_pages"] * engine.memory_plan()["kv_page_bytes"]
print(json.dumps({"opened_s": opened, "peak": peak, "kv": kv}))
"""


def test_peak_memory(demo_model):
    out = json.loads(
        subprocess.run([sys.executable, "-c", MEASURE, demo_model], capture_output=True, text=True, check=True).stdout
    )
    print(out)
    assert out["peak"] < pathlib.Path(demo_model).stat().st_size + out["kv"] + 150e6


def test_chat_template_of_the_file(demo_model):
    with zinc_rt.Engine(demo_model) as engine:
        text = engine.apply_template([{"role": "user", "content": "Hi"}])
        assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        assert engine.detokenize(engine.tokenize(text, add_special=False)) == text


@pytest.mark.slow
def test_int8_fusion_and_chunks_keep_the_bits(demo_model):
    with (
        zinc_rt.Engine(demo_model, max_context=512) as engine,
        zinc_rt.Engine(demo_model, max_context=512, fusion="0") as unfused,
    ):
        ids = engine.tokenize(
            "The river had been rising since before dawn, and by noon the lower fields were under water. " * 3
        )
        whole = engine.logits(ids, which="last")
        for chunk in (1, 7, 16, 64):
            assert (engine.logits(ids, which="last", chunk=chunk) == whole).all()
        assert (unfused.logits(ids, which="last") == whole).all()
        assert np.isfinite(whole).all()
