"""How models and engines end: unloading, draining, closing, the end of the program; traces and memory."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import zinc_rt
from tenant_helpers import FREE, HASHED, held, holder, release, rest, until
from zinc_rt import TenantQuota, errors


def test_two_models(tiny_model, hybrid_model):
    with zinc_rt.Engine(tiny_model, max_slots=4) as engine:
        session = engine.tenant("t", TenantQuota(max_concurrent_slots=8)).session()
        wanted = session.generate("the thin", max_tokens=10, **HASHED)
        engine.add_model(tiny_model, "twin", max_slots=2)
        engine.add_model(hybrid_model, "hybrid", max_slots=2)
        assert engine.models == ["tiny", "twin", "hybrid"]
        for bad in ({"name": "twin"}, {"name": ""}):
            with pytest.raises(errors.InvalidArgument):
                engine.add_model(tiny_model, **bad)
        with ThreadPoolExecutor(6) as pool:
            models = [None, "twin", "hybrid"] * 4
            got = list(pool.map(lambda m: session.generate("the thin", model=m, max_tokens=10, **HASHED), models))
        assert all(c.logits_hashes == wanted.logits_hashes for c, m in zip(got, models, strict=True) if m != "hybrid")
        assert len({tuple(c.logits_hashes) for c, m in zip(got, models, strict=True) if m == "hybrid"}) == 1
        assert engine.model_card("hybrid")["architecture"] == "qwen35"
        ids = engine.tokenize("the", model="hybrid")
        assert engine.detokenize(ids, model="hybrid") == "the"
        assert engine.logits(ids, model="hybrid").shape == (len(ids), engine.model_card("hybrid")["vocab_size"])
        assert engine.hidden(ids, 0, model="hybrid").shape[1] == engine.model_card("hybrid")["model_dim"]
        assert engine.memory_plan("twin")["allocated_bytes"] < engine.memory_plan()["allocated_bytes"]
        assert [m["name"] for m in engine.stats()["models"]] == engine.models
        for call in (engine.model_card, engine.memory_plan, lambda m: engine.tokenize("a", model=m)):
            with pytest.raises(errors.NotFound, match="nobody"):
                call("nobody")


def test_a_model_leaves_when_its_requests_have_ended(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=2) as engine:
        session = engine.tenant("t").session()
        with pytest.raises(errors.InvalidArgument, match="only model"):
            engine.remove_model("tiny")
        engine.add_model(tiny_model, "twin", max_slots=2)
        tenant = holder(engine)
        stream = held(tenant, model="twin")
        removal = threading.Thread(target=engine.remove_model, args=("twin",))
        removal.start()

        def is_leaving():
            try:
                session.generate(token_ids=[1], max_tokens=1, model="twin")
            except errors.Unavailable as error:
                return "being removed" in str(error)
            return False

        until(is_leaving)
        assert session.generate(token_ids=[1], max_tokens=4, **FREE).finish_reason == "length"
        assert removal.is_alive()
        release(tenant)
        assert len(rest(stream)) == 39
        removal.join(10)
        assert not removal.is_alive() and engine.models == ["tiny"]
        stream.cancel()  # of a model that is gone
        with pytest.raises(errors.NotFound, match="twin"):
            session.generate(token_ids=[1], model="twin")
        assert session.generate(token_ids=[1], max_tokens=4, **FREE).finish_reason == "length"


def test_max_models_unloads_the_idle_one(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=2, max_models=2) as engine:
        engine.add_model(tiny_model, "b", max_slots=2)
        engine.add_model(tiny_model, "c", max_slots=2)
        assert engine.models == ["tiny", "c"]
        stream = held(holder(engine), model="c")
        with pytest.raises(errors.Exhausted, match="2 models are loaded, 2 allowed"):
            engine.add_model(tiny_model, "d", max_slots=2)
        stream.cancel()


def test_drain(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=1) as engine:
        session = engine.tenant("t").session()
        tenant = holder(engine)
        stream = held(tenant)
        assert not engine.drain(0.05)
        with pytest.raises(errors.Unavailable, match="no more requests"):
            session.generate(token_ids=[1])
        release(tenant)
        assert len(rest(stream)) == 39
        assert engine.drain(10) and engine.drain()


def test_close_ends_all_streams(tiny_model):
    engine = zinc_rt.Engine(tiny_model, max_slots=1)
    session = engine.tenant("t").session()
    first = held(holder(engine))
    waiting = session.stream(token_ids=[1], max_tokens=2)
    handle = session.submit(token_ids=[1], max_tokens=2, on_event=print)

    async def wait_for_event():
        async for _ in session.stream(token_ids=[1], max_tokens=2):
            pass

    with ThreadPoolExecutor(2) as pool:
        blocked = [pool.submit(next, waiting), pool.submit(asyncio.run, wait_for_event())]
        until(lambda: engine.stats()["waiting"] == 3)
        engine.close()
        for future in blocked:
            with pytest.raises(errors.Unavailable, match="closed"):
                future.result(10)
    with pytest.raises(errors.Unavailable, match="closed"):
        list(first)
    with pytest.raises(errors.Unavailable, match="closed"):
        handle.wait(10)


def test_handles_outlive_the_engines_name(tiny_model):
    tenant = holder(zinc_rt.Engine(tiny_model, max_slots=1))
    gc.collect()
    stream = held(tenant)
    del tenant  # the last handle: closes the engine
    with pytest.raises(errors.Unavailable, match="closed"):
        list(stream)


def test_a_program_may_end_with_all_of_it_running(tiny_model):
    program = f"""
import time, zinc_rt
engine = zinc_rt.Engine({str(tiny_model)!r}, max_slots=2)
session = engine.tenant("t", zinc_rt.TenantQuota(max_concurrent_slots=2)).session()
stream = session.stream(token_ids=[1], max_tokens=400, ignore_eos=True, stream_capacity=1)
handle = session.submit(token_ids=[2], max_tokens=400, ignore_eos=True, on_event=lambda _: time.sleep(0.001))
next(stream)
print("end")
"""
    for _ in range(3):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")


def test_a_trace_has_the_steps_and_the_requests(tiny_model, tmp_path):
    path = tmp_path / "trace.json"
    with zinc_rt.Engine(tiny_model, max_slots=1) as engine:
        with engine.trace(path):
            batch = holder(engine, "batch", qos_class="batch")
            stream = held(batch)
            urgent = engine.tenant("urgent", TenantQuota(qos_class="interactive"))
            urgent.session().generate(token_ids=[1], max_tokens=5, **FREE)
            release(batch)
            rest(stream)
            steps = engine.stats()["steps"]  # waits for the end of the last step, whose span would be missing else
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert trace["otherData"]["dropped_records"] == 0
    spans = [event for event in events if event["ph"] == "X"]
    assert all(span["dur"] >= 0 for span in spans)
    # A step is its phases; those of less than a microsecond are left out.
    phases = [span for span in spans if span["name"] in ("admit", "plan", "fill", "execute", "commit")]
    assert {"plan", "execute", "commit"} <= {span["name"] for span in phases}
    assert sum(span["name"] == "execute" for span in phases) == steps
    whole = [span["dur"] for span in spans if span["name"] == "step"]
    assert len(whole) == steps and sum(whole) == sum(span["dur"] for span in phases)
    text = path.read_text()
    assert '"batch"' in text and '"urgent"' in text and "preempted" in text


def test_a_trace_that_cannot_be_written(tiny_engine, tmp_path):
    with pytest.raises(errors.ZincError, match="nowhere"):
        with tiny_engine.trace(tmp_path / "nowhere" / "trace.json"):
            pass


def rss_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_does_not_grow_with_requests(tiny_engine):
    session = tiny_engine.tenant("many", TenantQuota(decode_tokens_per_s=1e6)).session()

    def requests(n):
        for i in range(n):
            session.generate(token_ids=[i % 7] * 20, max_tokens=3, n=1 + i % 2, logprobs=3, **FREE)
            session.submit(token_ids=[i % 5], max_tokens=2, on_event=lambda _: None, **FREE).wait()

    requests(100)
    gc.collect()
    before = rss_bytes()
    requests(300)
    gc.collect()
    assert rss_bytes() - before < 4 << 20


WAITING = """
import sys, threading, time, zinc_rt

engine = zinc_rt.Engine(sys.argv[1], max_slots=4)
quota = zinc_rt.TenantQuota(decode_tokens_per_s=1e-3)
session = engine.tenant("me", quota).session()
ask = dict(prompt="a", max_tokens=200, ignore_eos=True)
handle = session.submit(**ask, on_event=lambda event: None)
begun = []

def wait(call):
    begun.append(call)
    call()

for call in (
    lambda: session.generate(**ask),
    lambda: list(session.stream(**ask)),
    lambda: handle.wait(),
    lambda: engine.drain(),
    lambda: [engine.tokenize("a" * 1000) or engine.stats() for _ in iter(int, 1)],
):
    threading.Thread(target=wait, args=[call], daemon=True).start()
while len(begun) < 5:
    time.sleep(0.01)
time.sleep(0.3)
print("the end")
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "engine.close()"])
def test_daemon_threads_that_wait_do_not_abort_the_end_of_the_interpreter(tiny_model, ending):
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", WAITING + ending, tiny_model], capture_output=True, text=True, timeout=60
        )
        assert run.returncode == (3 if "3" in ending else 0), run.stderr
        assert run.stdout == "the end\n" and "terminate" not in run.stderr
