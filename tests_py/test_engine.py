"""Engine, Tenant and Session on tiny models made here or found beside the checkout."""

import asyncio
import dataclasses
import pathlib
import pickle
import re
import threading

import numpy as np
import pytest

import zinc_rt

SLOW = zinc_rt.TenantQuota(max_concurrent_slots=1, decode_tokens_per_s=0.1)


def test_a_tier_without_fast_kernels_runs_exact_ones_and_says_so(tiny_engine, tiny_model):
    run = {"token_ids": [3, 4, 5], "max_tokens": 4, "return_logits_hash": True, "ignore_eos": True}
    with zinc_rt.Engine(tiny_model, tier="t_cpu", cpu_kernels="ref", arithmetic="fast") as engine:
        assert engine.arithmetic == "exact"
        wanted, got = (e.tenant("t").session().generate(**run) for e in (tiny_engine, engine))
    assert got.logits_hashes == wanted.logits_hashes


def test_open_reports_what_it_runs(tiny_engine):
    assert tiny_engine.tier == "t_cpu"
    assert tiny_engine.arithmetic == "exact"
    card = tiny_engine.model_card()
    assert card["arithmetic_version"] == tiny_engine.arithmetic_version == 3
    assert card["architecture"] == "llama"
    assert card["vocab_size"] == tiny_engine.vocab_size
    assert card["model_dim"] == tiny_engine.model_dim


def test_plan_is_what_is_allocated(tiny_engine):
    plan = tiny_engine.memory_plan()
    regions = [r for r in plan["regions"] if not r["mapped"]]
    assert sum(r["bytes"] for r in regions) == plan["allocated_bytes"] == tiny_engine.stats()["allocated_bytes"]


def test_logits_shape_and_last(tiny_engine):
    ids = list(range(10, 40))
    every = tiny_engine.logits(ids)
    assert every.dtype == np.float32 and every.shape == (30, tiny_engine.vocab_size)
    last = tiny_engine.logits(ids, which="last")
    assert last.shape == (1, tiny_engine.vocab_size)
    assert (last[0] == every[-1]).all()


@pytest.mark.parametrize("chunk", [1, 7, 16])
def test_chunks_keep_the_bits(tiny_engine, chunk):
    ids = [(7 * i) % 400 for i in range(90)]
    assert (tiny_engine.logits(ids, chunk=chunk) == tiny_engine.logits(ids)).all()


def test_hidden_shapes(tiny_engine):
    n_layers = tiny_engine.model_card()["n_layers"]
    for layer in range(-1, n_layers):
        assert tiny_engine.hidden([1, 2, 3], layer).shape == (3, tiny_engine.model_dim)
    with pytest.raises(zinc_rt.errors.InvalidArgument, match=f"layer {n_layers}"):
        tiny_engine.hidden([1, 2, 3], n_layers)


def test_greedy_follows_the_logits(tiny_engine):
    ids = [5, 6, 7]
    completion = tiny_engine.tenant("t").session().generate(token_ids=ids, max_tokens=12, ignore_eos=True)
    for token in completion.token_ids:
        assert token == int(tiny_engine.logits(ids, which="last").argmax())
        ids.append(token)
    assert completion.finish_reason == "length"
    assert completion.usage.completion_tokens == 12
    assert completion.usage.total_tokens == 15


def test_stream_is_the_whole(tiny_engine):
    session = tiny_engine.tenant("t").session()
    whole = session.generate(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True)
    stream = session.stream(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True)
    events = list(stream)
    assert "".join(e.text for e in events) == whole.text
    assert [e.token_id for e in events if e.token_id is not None] == whole.token_ids
    assert stream.completion.token_ids == whole.token_ids


def test_async_stream(tiny_engine):
    async def collect():
        session = tiny_engine.tenant("t").session()
        return [e.token_id async for e in session.astream(token_ids=[9, 10], max_tokens=6, ignore_eos=True)]

    assert len([t for t in asyncio.run(collect()) if t is not None]) == 6


def test_seed_decides(tiny_engine):
    session = tiny_engine.tenant("t").session()
    run = {"token_ids": [3, 4], "max_tokens": 24, "temperature": 1.0, "ignore_eos": True}
    first = session.generate(seed=1, **run)
    assert first.token_ids == session.generate(seed=1, **run).token_ids
    assert first.token_ids != session.generate(seed=2, **run).token_ids
    drawn = session.generate(**run)
    assert drawn.token_ids == session.generate(seed=drawn.seed, **run).token_ids


def test_hashes_are_equal_bits(tiny_engine):
    session = tiny_engine.tenant("t").session()
    run = {"token_ids": [3, 4, 5], "max_tokens": 8, "return_logits_hash": True, "ignore_eos": True}
    first = session.generate(**run)
    assert len(first.logits_hashes) == 8 and len(set(first.logits_hashes)) > 1
    assert first.logits_hashes == session.generate(**run).logits_hashes


def test_logprobs(tiny_engine):
    session = tiny_engine.tenant("t").session()
    completion = session.generate(token_ids=[3, 4, 5], max_tokens=3, logprobs=5, ignore_eos=True)
    row = tiny_engine.logits([3, 4, 5], which="last")[0].astype(np.float64)
    wanted = row - row.max() - np.log(np.exp(row - row.max()).sum())
    entry = completion.logprobs[0]
    assert entry.token_id == completion.token_ids[0] == entry.top[0][0]
    assert entry.logprob == pytest.approx(wanted.max(), abs=1e-9)
    assert [i for i, _ in entry.top] == list(np.argsort(-row, kind="stable")[:5])


def test_stop_string_ends_before_it(tiny_engine):
    session = tiny_engine.tenant("t").session()
    whole = session.generate(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True).text
    stop = whole[len(whole) // 2 : len(whole) // 2 + 3]
    cut = session.generate(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True, stop=[stop])
    assert cut.finish_reason == "stop"
    assert cut.text == whole[: whole.index(stop)]


def test_stop_token_id(tiny_engine):
    session = tiny_engine.tenant("t").session()
    ids = session.generate(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True).token_ids
    cut = session.generate(token_ids=[9, 10, 11], max_tokens=20, ignore_eos=True, stop_token_ids=[ids[4]])
    assert cut.token_ids == ids[: ids.index(ids[4]) + 1]
    assert cut.finish_reason == "stop"


def test_cancel_frees_the_slot(tiny_engine):
    free = tiny_engine.stats()["pages_free"]
    # The engine does not wait for readers; such a rate makes the request stay after its first tokens.
    session = tiny_engine.tenant("slow", quota=SLOW).session()
    stream = session.stream(token_ids=[1, 2, 3] * 12, max_tokens=100, ignore_eos=True)
    next(stream)
    assert tiny_engine.stats()["pages_free"] < free
    stream.cancel()
    assert len(list(stream)) <= 2
    assert stream.completion.finish_reason == "cancelled"
    assert tiny_engine.stats()["pages_free"] == free


def test_interleaved_streams_keep_their_bits(tiny_engine):
    session = tiny_engine.tenant("t").session()
    prompts = [[5, 6], [7, 8, 9], [10] * 20]
    run = {"max_tokens": 10, "ignore_eos": True, "return_logits_hash": True}
    alone = [session.generate(token_ids=p, **run).logits_hashes for p in prompts]
    streams = [session.stream(token_ids=p, **run) for p in prompts]
    for _ in range(12):
        for stream in streams:
            next(stream, None)
    assert [s.completion.logits_hashes for s in streams] == alone


def test_threads_share_an_engine(tiny_engine):
    session = tiny_engine.tenant("t").session()
    wanted = session.generate(token_ids=[5, 6], max_tokens=8, ignore_eos=True).token_ids
    got = [None] * 4

    def run(i):
        got[i] = session.generate(token_ids=[5, 6], max_tokens=8, ignore_eos=True).token_ids

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == [wanted] * 4


def test_ledger_counts(tiny_engine):
    tenant = tiny_engine.tenant("counted")
    tenant.session().generate(token_ids=[1, 2, 3], max_tokens=5, ignore_eos=True)
    with pytest.raises(zinc_rt.errors.InvalidArgument):
        tenant.session().generate(token_ids=[10**6])
    ledger = tenant.ledger()
    assert (ledger.tokens_prompted, ledger.tokens_generated, ledger.slots_admitted) == (3, 5, 1)
    assert ledger.requests_rejected == 1
    assert ledger.kv_pages_peak == 1 and ledger.p50_ttft_ms > 0


def test_ledger_is_a_dataclass_and_a_row_of_numbers(tiny_engine):
    tenant = tiny_engine.tenant("rows")
    before = tenant.ledger()
    tenant.session().generate(token_ids=[1, 2, 3], max_tokens=5, ignore_eos=True)
    ledger = tenant.ledger()
    row = ledger.as_dict()
    assert list(row) == [field.name for field in dataclasses.fields(zinc_rt.TenantLedger)]
    assert {type(value) for value in row.values()} == {int, float}
    assert (row["tokens_generated"], before.tokens_generated) == (5, 0)
    assert zinc_rt.TenantLedger(**row) == ledger == pickle.loads(pickle.dumps(ledger)) != before
    assert "tokens_generated=5" in repr(ledger)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.tokens_generated = 0


def test_ledger_fields_are_those_of_the_header():
    header = (pathlib.Path(__file__).resolve().parent.parent / "cpp/include/zinc_rt/ledger.h").read_text()
    found = re.findall(r"^  (std::uint\d+_t|double) (\w+) = 0;", header, re.MULTILINE)
    wanted = [(field.name, field.type) for field in dataclasses.fields(zinc_rt.TenantLedger)]
    assert [(name, float if kind == "double" else int) for kind, name in found] == wanted


def test_quota_refuses(tiny_engine):
    quota = zinc_rt.TenantQuota(max_concurrent_slots=1, max_kv_pages=2, max_context_tokens=40)
    session = tiny_engine.tenant("small", quota=quota).session()
    with pytest.raises(zinc_rt.errors.InvalidArgument, match="a prompt of 40 tokens and one to generate.* has 40 "):
        session.generate(token_ids=[1] * 40, max_tokens=1)
    with pytest.raises(zinc_rt.errors.InvalidArgument, match="may need 3 KV pages, the tenant's quota is 2"):
        session.generate(token_ids=[1], max_tokens=32)
    session.generate(token_ids=[1], max_tokens=31)


def test_a_used_up_slot_quota_makes_requests_wait(tiny_engine):
    tenant = tiny_engine.tenant("one at a time", quota=SLOW)
    first = tenant.session().stream(token_ids=[1], max_tokens=10, ignore_eos=True)
    next(first)
    second = tenant.session().stream(token_ids=[2], max_tokens=4, ignore_eos=True)
    assert second._poll(50) == (False, None)
    ledger = tenant.ledger()
    assert (ledger.slots_now, ledger.waiting_now) == (1, 1)
    tenant.quota = zinc_rt.TenantQuota(max_concurrent_slots=1)
    assert len(list(first)) >= 9
    assert len(list(second)) >= 4
    assert second.completion.timings.queue_ms >= 50


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "0 of prompt"),
        ({"prompt": "a", "token_ids": [1]}, "2 of prompt"),
        ({"token_ids": []}, "no tokens"),
        ({"token_ids": [-1]}, "token id -1"),
        ({"token_ids": [1], "temperature": float("nan")}, "temperature"),
        ({"token_ids": [1], "top_p": 1.5}, "top_p is 1.5"),
        ({"token_ids": [1], "max_tokens": 0}, "max_tokens"),
        ({"token_ids": [1], "logprobs": 1000}, "logprobs is 1000"),
        ({"token_ids": [1] * 600}, "600 tokens"),
        ({"token_ids": [1], "repetition_penalty": 0.0}, "repetition_penalty"),
    ],
)
def test_bad_requests_are_refused(tiny_engine, arguments, message):
    with pytest.raises(zinc_rt.errors.InvalidArgument, match=message):
        tiny_engine.tenant("t").session().generate(**arguments)


def test_unknown_argument(tiny_engine):
    with pytest.raises(TypeError, match="beam_width"):
        tiny_engine.tenant("t").session().generate(token_ids=[1], beam_width=4)


def test_context_end_is_reported(tiny_model):
    with zinc_rt.Engine(tiny_model, max_context=32) as engine:
        completion = engine.tenant("t").session().generate(token_ids=[1] * 30, max_tokens=10, ignore_eos=True)
        assert completion.finish_reason == "length"
        assert len(completion.token_ids) == 2
        assert completion.timings.clamps == ["max_tokens 10 cut by the context of 32"]


def test_deadline(tiny_engine):
    completion = tiny_engine.tenant("t").session().generate(token_ids=[1], max_tokens=400, deadline_ms=0.001)
    assert completion.finish_reason == "deadline"


def test_pages_run_out_and_come_back(tiny_model):
    with zinc_rt.Engine(tiny_model, kv_pages=4, max_context=128, max_slots=2, prefix_cache=False) as engine:
        session = engine.tenant("t").session()
        with pytest.raises(zinc_rt.errors.InvalidArgument, match="may need 5 KV pages, there are 4"):
            session.generate(token_ids=[1] * 40, max_tokens=40)
        slow = engine.tenant("slow", quota=SLOW)
        first = slow.session().stream(token_ids=[1] * 40, max_tokens=8, ignore_eos=True)
        next(first)
        second = session.stream(token_ids=[2] * 40, max_tokens=8, ignore_eos=True)
        assert second._poll(50) == (False, None)  # 3 of 4 pages are taken
        slow.quota = zinc_rt.TenantQuota()
        assert len(list(first)) >= 7
        assert len(list(second)) >= 8


def test_close(tiny_model):
    engine = zinc_rt.Engine(tiny_model)
    session = engine.tenant("t", quota=SLOW).session()
    stream = session.stream(token_ids=[1], max_tokens=50, ignore_eos=True)
    next(stream)
    engine.close()
    assert engine.closed
    for call in (
        lambda: list(stream),
        lambda: session.generate("a"),
        lambda: engine.logits([1]),
        lambda: engine.tenant("u"),
    ):
        with pytest.raises(zinc_rt.errors.Unavailable, match="closed"):
            call()
    engine.close()


def test_no_pickling(tiny_engine):
    for thing in (tiny_engine, tiny_engine.tenant("t"), tiny_engine.tenant("t").session()):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)


@pytest.mark.parametrize(
    "options", [{"kv_dtype": "f32"}, {"mmap": False}, {"threads": 1}, {"threads": 3}, {"fusion": "0"}, {"chunk_cap": 8}]
)
def test_options_that_keep_the_bits(tiny_model, options):
    ids = [(3 * i) % 300 for i in range(50)]
    with zinc_rt.Engine(tiny_model, kv_dtype="f32", max_slots=4) as engine:
        wanted = engine.logits(ids)
    with zinc_rt.Engine(tiny_model, **({"kv_dtype": "f32", "max_slots": 4} | options)) as engine:
        assert (engine.logits(ids) == wanted).all()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"tier": "t_cuda"}, "Unavailable", "t_cuda was asked for"),
        ({"tier": "t_banana"}, "InvalidArgument", "unknown tier"),
        ({"kv_dtype": "q2_k"}, "InvalidArgument", "kv_dtype"),
        ({"activations": "int4"}, "InvalidArgument", "activations"),
        ({"arithmetic": "sloppy"}, "InvalidArgument", "arithmetic"),
        ({"max_context": 10**6}, "InvalidArgument", "max_context 1000000"),
        ({"max_slots": 0}, "InvalidArgument", "max_slots is 0, 1 to 4096 allowed"),
        ({"fusion": "everything"}, "InvalidArgument", "fusion"),
        ({"threads": -1}, "InvalidArgument", "threads"),
    ],
)
def test_bad_options(tiny_model, options, error, message):
    with pytest.raises(getattr(zinc_rt.errors, error), match=message):
        zinc_rt.Engine(tiny_model, **options)


def test_bad_files(tmp_path):
    with pytest.raises(zinc_rt.errors.NotFound):
        zinc_rt.Engine(tmp_path / "none.gguf")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    with pytest.raises(zinc_rt.errors.Corrupt):
        zinc_rt.Engine(bad)


def test_null_tier_runs_nothing(tiny_model):
    with zinc_rt.Engine(tiny_model, tier="null") as engine:
        assert engine.tier == "null"
        assert (engine.logits([1, 2, 3]) == 0).all()


def test_progress_reaches_the_end(tiny_model):
    seen = []
    with zinc_rt.Engine(tiny_model, on_progress=lambda done, total: seen.append((done, total))):
        assert seen and seen[-1][0] == seen[-1][1] > 0
        assert [d for d, _ in seen] == sorted(d for d, _ in seen)


def test_prefill_validation(tiny_model, monkeypatch):
    monkeypatch.setenv("ZINC_RT_BATCHED_PREFILL", "validate")
    with zinc_rt.Engine(tiny_model) as engine:
        engine.tenant("t").session().generate(token_ids=list(range(60)), max_tokens=2)
        assert engine.stats()["largest_prefill_difference"] == 0
    monkeypatch.setenv("ZINC_RT_BATCHED_PREFILL", "0")
    with zinc_rt.Engine(tiny_model) as engine:
        engine.tenant("t").session().generate(token_ids=list(range(60)), max_tokens=1)
        assert engine.stats()["steps"] == 60
    monkeypatch.setenv("ZINC_RT_BATCHED_PREFILL", "maybe")
    with pytest.raises(zinc_rt.errors.InvalidArgument, match="BATCHED_PREFILL=maybe"):
        zinc_rt.Engine(tiny_model)
