"""Ctrl-C while a call computes: the exception does not wait for the call's end."""

import contextlib
import os
import signal
import threading

import pytest

IDS = [5, 6, 7] * 16


@pytest.fixture
def held_engine(tiny_engine):
    """An engine whose steps stand still: a processor of logits waits, in a stream that has begun.

    A call that takes turns with steps cannot end meanwhile. `ends` lets the steps go on; `was_too_late` is set where
    nobody did so.
    """
    is_held, ends, was_too_late = threading.Event(), threading.Event(), threading.Event()

    def wait(ids, logits):
        is_held.set()
        if not ends.wait(60):
            was_too_late.set()

    def read():
        with tiny_engine.tenant("held").session().stream("the", max_tokens=1, logits_processor=wait) as stream:
            list(stream)

    thread = threading.Thread(target=read)
    thread.start()
    assert is_held.wait(60)
    try:
        yield tiny_engine, ends, was_too_late
    finally:
        ends.set()
        thread.join()


@contextlib.contextmanager
def signals_until(done):
    """Sends this process SIGINT again and again; the handler raises once, as soon as the call has begun."""
    has_raised = []

    def handle(number, frame):
        while frame is not None and frame.f_code.co_name != "calls":
            frame = frame.f_back
        if frame is not None and not has_raised:
            has_raised.append(True)
            raise KeyboardInterrupt

    def send():
        while not done.wait(0.02):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        done.set()
        sender.join()
        signal.signal(signal.SIGINT, before)


CALLS = {
    "logits": lambda engine, path: engine.logits(IDS, chunk=1),
    "last logits": lambda engine, path: engine.logits(IDS, which="last"),
    "hidden": lambda engine, path: engine.hidden(IDS, 0),
    "save": lambda engine, path: engine.tenant("a").session().save(path, token_ids=IDS),
    "generate": lambda engine, path: engine.generate("the", max_tokens=2),
    "conversation": lambda engine, path: engine.conversation().say("the", max_tokens=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_call_that_waits_for_its_turn(held_engine, tmp_path, name):
    engine, ends, was_too_late = held_engine

    def calls():
        CALLS[name](engine, tmp_path / "saved")

    with pytest.raises(KeyboardInterrupt), signals_until(ends):
        calls()
    assert not was_too_late.is_set()
    # What was begun is given back, and the engine goes on.
    assert engine.logits([5, 6]).shape[0] == 2
    assert not (tmp_path / "saved").exists()
