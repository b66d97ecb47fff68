"""Many tenants, sessions and models on one engine: batching, sharing, waiting, giving way, and ends of every kind.

A tenant whose decode rate is next to nothing keeps a request in its slot for as long as a test needs.
"""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import synth_gguf
import zinc_rt
from zinc_rt import TenantQuota, errors

FREE = {"ignore_eos": True}
HASHED = {"ignore_eos": True, "return_logits_hash": True}


@pytest.fixture(scope="session")
def hybrid_model(tmp_path_factory):
    """Delta net beside attention: slots have state that is no KV."""
    path = tmp_path_factory.mktemp("models") / "hybrid.gguf"
    assert synth_gguf.main(["tiny-qwen35", "-o", str(path), "--types", "F16", "--width", "96"]) == 0
    return path


@pytest.fixture(params=["llama", "hybrid"])
def any_model(request):
    return request.getfixturevalue("tiny_model" if request.param == "llama" else "hybrid_model")


def holder(engine, name="holder", **quota):
    """A tenant whose requests stay after a token or two, until it is released."""
    return engine.tenant(name, TenantQuota(decode_tokens_per_s=0.1, **quota))


def release(tenant):
    quota = tenant.quota
    quota.decode_tokens_per_s = 1e6
    tenant.quota = quota


def held(tenant, token_ids=(1, 2, 3), max_tokens=40, **options):
    """A stream of a holder's, whose request has its slot."""
    stream = tenant.session().stream(token_ids=list(token_ids), max_tokens=max_tokens, ignore_eos=True, **options)
    assert next(stream).token_id is not None
    return stream


def rest(stream):
    return [event.token_id for event in stream if event.token_id is not None]


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.005)


def n_threads():
    return len(os.listdir("/proc/self/task"))


# Threads and event loops


def test_threads_with_tenants_of_their_own(any_model):
    prompts = [[10 + i, 11, 12 + i] * 5 for i in range(6)]
    with zinc_rt.Engine(any_model, max_slots=8) as engine:
        alone = engine.tenant("alone").session()
        wanted = [alone.generate(token_ids=p, max_tokens=10, **HASHED).logits_hashes for p in prompts]

        def work(name):
            session = engine.tenant(name).session()
            return [session.generate(token_ids=p, max_tokens=10, **HASHED).logits_hashes for p in prompts]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, [f"tenant {i}" for i in range(8)])) == [wanted] * 8
        stats = engine.stats()
        assert (stats["running"], stats["waiting"], stats["internal_errors"]) == (0, 0, 0)
        assert stats["pages_free"] == stats["pages"] and stats["slots_free"] == 8
        # They ran together: 9 x 6 requests of 9 decode steps would take 486 steps one by one.
        assert stats["steps"] < 400


def collect(stream):
    async def run():
        return [event.token_id async for event in stream if event.token_id is not None]

    return run()


def test_one_event_loop_has_many_streams_and_no_threads(tiny_engine):
    session = tiny_engine.tenant("loop", TenantQuota(max_concurrent_slots=8)).session()
    wanted = [session.generate(token_ids=[i], max_tokens=8, **FREE).token_ids for i in range(64)]
    before = n_threads()
    most = before

    async def main():
        nonlocal most
        streams = [session.stream(token_ids=[i], max_tokens=8, **FREE) for i in range(32)]
        streams += [session.astream(token_ids=[i], max_tokens=8, **FREE) for i in range(32, 64)]
        tasks = [asyncio.ensure_future(collect(stream)) for stream in streams]
        while not all(task.done() for task in tasks):
            most = max(most, n_threads())
            await asyncio.sleep(0.001)
        return [task.result() for task in tasks]

    assert asyncio.run(main()) == wanted
    assert most == before


def test_agenerate(tiny_engine):
    session = tiny_engine.tenant("loop").session()
    wanted = session.generate(token_ids=[7], max_tokens=9, **FREE)
    got = asyncio.run(session.agenerate(token_ids=[7], max_tokens=9, **FREE))
    assert (got.token_ids, got.text, got.finish_reason) == (wanted.token_ids, wanted.text, "length")


@pytest.mark.parametrize("why", ["no add_reader", "no descriptor"])
def test_a_loop_without_readers_waits_in_threads(tiny_engine, monkeypatch, why):
    session = tiny_engine.tenant("loop").session()
    wanted = session.generate(token_ids=[7], max_tokens=9, **FREE).token_ids

    def unavailable(*_):
        raise NotImplementedError

    async def main():
        if why == "no add_reader":
            asyncio.get_running_loop().add_reader = unavailable
        else:
            monkeypatch.setattr(zinc_rt.Stream, "fileno", lambda _: -1)
        return await collect(session.stream(token_ids=[7], max_tokens=9, **FREE))

    assert asyncio.run(main()) == wanted


@pytest.mark.parametrize("way", ["break", "break astream", "cancel", "async with"])
def test_leaving_an_async_loop_cancels(tiny_engine, way):
    tenant = holder(tiny_engine, f"leaves by {way}")
    session = tenant.session()
    options = {"token_ids": [5], "max_tokens": 400, **FREE}

    async def leave():
        if way == "async with":
            async with session.stream(**options) as stream:
                assert (await anext(stream)).token_id is not None
            return
        async for _ in session.astream(**options) if way == "break astream" else session.stream(**options):
            if way == "cancel":
                await asyncio.sleep(100)
            break

    async def main():
        task = asyncio.ensure_future(leave())
        if way == "cancel":
            await asyncio.sleep(0.1)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.01)

    asyncio.run(main())
    gc.collect()
    until(lambda: tenant.ledger().requests_cancelled == 1)
    assert tenant.ledger().slots_now == 0


def test_ctrl_c_reaches_those_who_wait(tiny_model):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with zinc_rt.Engine(tiny_model, max_slots=1) as engine:
            session = engine.tenant("t").session()
            first = held(holder(engine))
            waits = session.stream(token_ids=[2], max_tokens=2)
            handle = session.submit(token_ids=[2], max_tokens=2, on_event=print)
            for call in (
                lambda: next(waits),
                lambda: session.generate(token_ids=[2], max_tokens=2),
                lambda: handle.wait(),
                lambda: engine.drain(),
            ):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with pytest.raises(KeyboardInterrupt):
                    call()
            first.cancel()
    finally:
        signal.signal(signal.SIGALRM, before)


# Several completions of a prompt


def test_n_choices(any_model):
    prompt = [(5 * i) % 200 for i in range(70)]
    with zinc_rt.Engine(any_model, max_slots=8) as engine:
        session = engine.tenant("t", TenantQuota(max_concurrent_slots=8)).session()
        four = session.generate(token_ids=prompt, n=4, max_tokens=6, **HASHED)
        assert [choice.logits_hashes for choice in four.choices] == [four.logits_hashes] * 4
        usage = four.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (70, 24, 94)
        # The first computes the prompt, each other one its last token; with state, what is behind its last whole page.
        assert engine.stats()["prefill_tokens"] in (70 + 3 * 1, 70 + 3 * 6)
        run = {"token_ids": prompt, "max_tokens": 12, "temperature": 1.0, "ignore_eos": True}
        drawn = session.generate(n=3, seed=5, **run)
        assert len({tuple(choice.token_ids) for choice in drawn.choices}) == 3
        for choice in drawn.choices:
            assert session.generate(seed=choice.seed, **run).token_ids == choice.token_ids
        assert drawn.choices[0].seed == 5
        assert session.generate(token_ids=prompt, max_tokens=2).choices == []


def test_events_say_which_choice(tiny_engine):
    stream = tiny_engine.tenant("t").session().stream(token_ids=[1], n=3, max_tokens=5, temperature=1.0, seed=1, **FREE)
    texts = ["", "", ""]
    for event in stream:
        texts[event.index] += event.text
    assert texts == [choice.text for choice in stream.completion.choices]


# The prefix cache


def conversation(engine, session):
    """Three turns; each prompt is the whole history."""
    history = [(7 * i) % 200 for i in range(40)]
    answers = []
    for turn in range(3):
        answer = session.generate(token_ids=history, max_tokens=10, **HASHED)
        answers.append(answer)
        history = history + answer.token_ids + [(turn + 11 * i) % 200 for i in range(20)]
    return answers


def test_turns_are_the_same_warm_and_cold(any_model):
    with (
        zinc_rt.Engine(any_model, max_slots=2) as warm,
        zinc_rt.Engine(any_model, max_slots=2, prefix_cache=False) as cold,
    ):
        a = conversation(warm, warm.tenant("t").session())
        b = conversation(cold, cold.tenant("t").session())
        assert [turn.logits_hashes for turn in a] == [turn.logits_hashes for turn in b]
        assert [turn.token_ids for turn in a] == [turn.token_ids for turn in b]
        assert [turn.usage.cached_tokens for turn in b] == [0, 0, 0]
        cached = [turn.usage.cached_tokens for turn in a]
        assert cached[0] == 0 and cached[1] >= 32 and cached[2] >= 64
        ledger = warm.tenant("t").ledger()
        assert ledger.tokens_cached == sum(cached) == warm.stats()["cached_tokens"]
        assert ledger.prefix_hit_rate == pytest.approx(sum(cached) / ledger.tokens_prompted, rel=0.1)


def test_flush_forgets(tiny_engine):
    tenant = tiny_engine.tenant("flushed")
    run = {"token_ids": [201] * 50, "max_tokens": 2, **FREE}
    session = tenant.session()
    assert session.generate(**run).usage.cached_tokens == 0
    assert session.generate(**run).usage.cached_tokens > 0
    cached = tiny_engine.stats()["pages_cached"]
    flushed = tenant.flush_prefix_cache()
    assert flushed >= 3 and tiny_engine.stats()["pages_cached"] == cached - flushed
    assert tenant.flush_prefix_cache() == 0
    assert session.generate(**run).usage.cached_tokens == 0


def test_prefixes_are_shared_inside_of_a_group_alone(tiny_engine):
    def cached(name, group):
        tenant = tiny_engine.tenant(name, TenantQuota(isolation_group=group))
        return tenant.session().generate(token_ids=[203] * 50, max_tokens=2, **FREE).usage.cached_tokens

    assert [cached("lone 1", None), cached("lone 2", None)] == [0, 0]
    assert [cached("in 1", "g"), cached("other 1", "h")] == [0, 0]
    assert cached("in 2", "g") >= 48 and cached("other 2", "h") >= 48


# Waiting, refusals, ends


def test_quota_fields():
    quota = TenantQuota(reserved_kv_pages=3, weight=2.5)
    assert (quota.reserved_kv_pages, quota.weight, quota.max_concurrent_slots) == (3, 2.5, 4)
    with pytest.raises(TypeError, match="max_slots"):
        TenantQuota(max_slots=3)


@pytest.mark.parametrize(
    "quota, error, message",
    [
        ({"qos_class": "urgent"}, errors.InvalidArgument, '"urgent" is not one of interactive, standard, batch'),
        ({"max_kv_pages": 5, "reserved_kv_pages": 6}, errors.InvalidArgument, "6 pages reserved, 5 allowed"),
        ({"weight": 0.0}, errors.InvalidArgument, "weight 0"),
        ({"decode_tokens_per_s": 0.0}, errors.InvalidArgument, "rate of 0 tokens/s"),
        ({"max_concurrent_slots": 0}, errors.InvalidArgument, "0 slots"),
        ({"reserved_kv_pages": 250}, errors.Exhausted, "250 pages reserved in all, .* has 204 to reserve"),
    ],
)
def test_quotas_that_cannot_be(tiny_engine, quota, error, message):
    with pytest.raises(error, match=message):
        tiny_engine.tenant("impossible", TenantQuota(**quota))


def test_reserved_pages_are_kept_from_others(tiny_model):
    with zinc_rt.Engine(tiny_model, kv_pages=20, max_context=256) as engine:
        owner = engine.tenant("owner", TenantQuota(reserved_kv_pages=10, max_kv_pages=16))
        other = engine.tenant("other").session()
        with pytest.raises(
            errors.InvalidArgument, match="may need 11 KV pages, there are 20, of which 10 are reserved"
        ):
            other.generate(token_ids=[1] * 160, max_tokens=10)
        assert other.generate(token_ids=[1] * 120, max_tokens=10, **FREE).finish_reason == "length"
        assert owner.session().generate(token_ids=[1] * 220, max_tokens=10, **FREE).finish_reason == "length"


def test_a_token_rate_makes_requests_wait(tiny_engine):
    # Five seconds' worth of tokens may be taken at once; the 20 past that take a second.
    session = tiny_engine.tenant("slow", TenantQuota(decode_tokens_per_s=20)).session()
    begin = time.monotonic()
    assert len(session.generate(token_ids=[1], max_tokens=121, **FREE).token_ids) == 121
    assert 0.8 < time.monotonic() - begin < 10


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"n": 0}, errors.InvalidArgument, "n is 0, 1 to 128 allowed"),
        ({"n": 129}, errors.InvalidArgument, "n is 129, 1 to 128 allowed"),
        ({"qos": "urgent"}, errors.InvalidArgument, '"urgent" is not one of'),
        ({"model": "nobody"}, errors.NotFound, 'no model "nobody" is loaded; there are: tiny'),
        (
            {"token_ids": [1] * 512},
            errors.InvalidArgument,
            "a prompt of 512 tokens and one to generate, the context has 512",
        ),
    ],
)
def test_refusals(tiny_engine, arguments, error, message):
    tenant = tiny_engine.tenant("refused")
    rejected = tenant.ledger().requests_rejected
    with pytest.raises(error, match=message):
        tenant.session().generate(**{"token_ids": [1], **arguments})
    assert tenant.ledger().requests_rejected == rejected + 1


def test_a_full_queue_says_when_to_try_again(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=1, queue_cap=2) as engine:
        session = engine.tenant("t").session()
        first = held(holder(engine))
        waiting = [session.stream(token_ids=[2], max_tokens=2) for _ in range(2)]
        with pytest.raises(errors.Exhausted, match="2 requests wait and 1 came, 2 may wait") as raised:
            session.generate(token_ids=[2], max_tokens=2)
        assert raised.value.retry_after >= 1
        first.cancel()
        assert [len(rest(stream)) for stream in waiting] == [2, 2]
        assert session.generate(token_ids=[2], max_tokens=2, **FREE).finish_reason == "length"


def test_a_deadline_holds_in_the_queue_too(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=1) as engine:
        session = engine.tenant("t").session()
        first = held(holder(engine))
        late = session.generate(token_ids=[2], max_tokens=2, deadline_ms=50)
        assert (late.finish_reason, late.token_ids) == ("deadline", [])
        first.cancel()
        running = held(holder(engine, "other"), deadline_ms=300)
        until(lambda: running.completion.finish_reason == "deadline")


def test_cancel_frees_slots_and_pages(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=2) as engine:
        tenant = holder(engine)
        streams = [tenant.session().stream(token_ids=[i] * 40, max_tokens=40, **FREE) for i in range(2)]
        until(lambda: tenant.ledger().slots_now == 2)
        waits = tenant.session().stream(token_ids=[9], max_tokens=2)
        assert engine.stats()["slots_free"] == 0 and tenant.ledger().kv_pages_now >= 4
        for stream in (waits, *streams):
            stream.cancel()
            rest(stream)
            assert stream.completion.finish_reason == "cancelled"
        stats = engine.stats()
        assert (stats["slots_free"], stats["pages_free"]) == (2, stats["pages"])
        ledger = tenant.ledger()
        assert (ledger.slots_now, ledger.kv_pages_now, ledger.waiting_now, ledger.requests_cancelled) == (0, 0, 0, 3)


def test_a_reader_who_stays_away_loses_the_request_and_disturbs_nobody(tiny_engine):
    # 200 tokens at once and 40 a second: enough to be behind with, and it does not end by itself meanwhile.
    tenant = tiny_engine.tenant("away", TenantQuota(decode_tokens_per_s=40))
    stream = held(tenant, max_tokens=500, stream_capacity=1)
    other = tiny_engine.tenant("busy").session()
    wanted = other.generate(token_ids=[8, 9], max_tokens=100, **FREE).token_ids
    end = time.monotonic() + 60
    while stream.completion.finish_reason == "":
        assert other.generate(token_ids=[8, 9], max_tokens=100, **FREE).token_ids == wanted
        assert time.monotonic() < end
    assert stream.completion.finish_reason == "client_too_slow"
    assert len(rest(stream)) <= 1
    ledger = tenant.ledger()
    assert (ledger.requests_too_slow, ledger.slots_now) == (1, 0)


# Callbacks


def test_callbacks_get_all_events(tiny_engine):
    session = tiny_engine.tenant("calls").session()
    wanted = session.generate(token_ids=[4, 5], max_tokens=30, **FREE)
    events, threads = [], set()

    def on_event(event):
        events.append(event)
        threads.add(threading.get_ident())

    handle = session.submit(token_ids=[4, 5], max_tokens=30, on_event=on_event, **FREE)
    assert handle.wait(60) and handle.is_done
    assert [e.token_id for e in events if e.token_id is not None] == wanted.token_ids == handle.completion.token_ids
    assert "".join(e.text for e in events) == wanted.text
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_callback_that_raises_ends_its_request(tiny_engine, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_value))
    calls = []

    def on_event(event):
        calls.append(event)
        raise RuntimeError("enough")

    session = tiny_engine.tenant("calls").session()
    handle = session.submit(token_ids=[4], max_tokens=400, on_event=on_event, stream_capacity=2, **FREE)
    assert handle.wait(60)
    assert len(calls) == 1 and [str(e) for e in seen] == ["enough"]
    assert handle.completion.finish_reason == "sink_failed"


def test_a_callback_that_blocks_holds_up_nobody_else(tiny_engine):
    go, entered = threading.Event(), threading.Event()
    calls = []

    def on_event(event):
        entered.set()
        go.wait(60)
        calls.append(event)

    session = tiny_engine.tenant("calls").session()
    handle = session.submit(token_ids=[4], max_tokens=5, on_event=on_event, **FREE)
    dropped = session.submit(token_ids=[4], max_tokens=5, on_event=on_event, **FREE)
    del dropped  # runs on; nothing waits for its callback
    try:
        assert entered.wait(10)
        for _ in range(5):
            assert len(session.generate(token_ids=[6], max_tokens=10, **FREE).token_ids) == 10
        until(lambda: handle.is_done)
        assert not handle.wait(0.05)
    finally:
        go.set()
    assert handle.wait(60)
    until(lambda: len([e for e in calls if e.token_id is not None]) == 10)


def test_a_handle_cancels(tiny_engine):
    go = threading.Event()
    tenant = holder(tiny_engine, "handle")
    handle = tenant.session().submit(
        token_ids=[4], max_tokens=400, on_event=lambda _: go.wait(60), stream_capacity=1, **FREE
    )
    until(lambda: tenant.ledger().slots_now == 1)
    handle.cancel()
    until(lambda: handle.is_done)
    go.set()
    assert handle.wait(10) and handle.completion.finish_reason == "cancelled"


# Preemption


def test_interactive_takes_the_slot_of_batch_which_loses_no_bit(any_model):
    with zinc_rt.Engine(any_model, max_slots=1) as engine:
        batch = engine.tenant("batch", TenantQuota(qos_class="batch", decode_tokens_per_s=4))
        urgent = engine.tenant("urgent", TenantQuota(qos_class="interactive"))
        run = {"token_ids": [3] * 20, "max_tokens": 60, **HASHED}
        undisturbed = engine.tenant("alone").session().generate(**run)
        stream = batch.session().stream(**run)
        events = [next(stream) for _ in range(20)]  # five seconds' worth; then it waits in its slot
        answer = urgent.session().generate(token_ids=[9], max_tokens=5, **FREE)
        assert answer.finish_reason == "length" and stream.completion.finish_reason == ""
        release(batch)
        events += list(stream)
        assert sum(event.preempted for event in events) == 1
        assert [e.token_id for e in events if e.token_id is not None] == undisturbed.token_ids
        assert stream.completion.logits_hashes == undisturbed.logits_hashes
        assert stream.completion.timings.queue_ms > 0
        ledger = batch.ledger()
        assert (ledger.slots_preempted, ledger.slots_admitted) == (1, 2)
        assert urgent.ledger().slots_preempted == 0 and engine.stats()["preemptions"] == 1


def test_a_request_may_be_less_urgent_than_its_tenant(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=1) as engine:
        tenant = holder(engine, qos_class="interactive")
        urgent = engine.tenant("urgent", TenantQuota(qos_class="interactive"))
        stream = held(tenant, qos="batch")
        assert urgent.session().generate(token_ids=[9], max_tokens=5, **FREE).finish_reason == "length"
        release(tenant)
        assert any(event.preempted for event in stream)
        # A batch tenant cannot ask for more.
        first = held(holder(engine, "standard"))
        pushy = engine.tenant("batch", TenantQuota(qos_class="batch")).session()
        assert pushy.generate(token_ids=[9], qos="interactive", deadline_ms=100).finish_reason == "deadline"
        first.cancel()


# Models, drain, close


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


# Traces and memory


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
        steps = engine.stats()["steps"]
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
