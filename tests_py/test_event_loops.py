"""Many streams on threads and on event loops."""

import asyncio
import gc
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

import zinc_rt
from tenant_helpers import FREE, HASHED, held, holder, n_threads, until
from zinc_rt import TenantQuota


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
        assert stats["steps"] < 470


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
