"""Requests whose events go to callbacks."""

import sys
import threading

from tenant_helpers import FREE, holder, until


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
