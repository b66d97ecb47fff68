"""A forked child that uses its parent's engine gets an error at once, and may open an engine of its own."""

import multiprocessing
import os
import subprocess
import sys
import textwrap

import pytest

import zinc_rt
from tenant_helpers import held, holder, release
from zinc_rt import errors

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Python's own, about threads and fork
]


def in_child(work, seconds=60):
    """What work() returns, a text, in a forked child. A child that hangs fails the test."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(work()).encode())
        except BaseException as error:
            os.write(write, f"raised {error!r}".encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        import select

        ready, _, _ = select.select([read], [], [], seconds)
        assert ready, "the child hangs"
        return b"".join(iter(lambda: os.read(read, 1 << 16), b"")).decode()
    finally:
        os.close(read)
        if not ready:
            os.kill(pid, 9)
        os.waitpid(pid, 0)


def refused(call):
    try:
        call()
    except errors.Unavailable as error:
        return "forked" in str(error)
    return False


def test_every_call_on_the_parents_objects_raises(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=4) as engine:
        tenant = holder(engine, "t")
        session = tenant.session()
        stream = held(tenant)
        handle = session.submit("the", max_tokens=2, on_event=lambda event: None)
        calls = {
            "generate": lambda: engine.generate("the"),
            "batch": lambda: engine.generate(["the", "an"]),
            "conversation": lambda: engine.conversation(),
            "tokenize": lambda: engine.tokenize("the"),
            "logits": lambda: engine.logits([1]),
            "stats": engine.stats,
            "tier": lambda: engine.tier,
            "tenant": lambda: engine.tenant("u"),
            "drain": lambda: engine.drain(),
            "trace": lambda: engine.start_trace(),
            "ledger": tenant.ledger,
            "quota": lambda: tenant.quota,
            "session": tenant.session,
            "session.generate": lambda: session.generate("the"),
            "stream": lambda: session.stream("the"),
            "next": lambda: next(stream),
            "finish": stream.finish,
            "wait": handle.wait,
        }
        assert in_child(lambda: [name for name, call in calls.items() if not refused(call)]) == "[]"
        assert "forked" in in_child(lambda: (repr(engine), repr(tenant), repr(stream)))
        release(tenant)
        assert stream.finish().finish_reason == "length" and handle.wait(60)  # the parent goes on


def test_a_child_drops_the_parents_objects_and_opens_its_own(tiny_model):
    engine = zinc_rt.Engine(tiny_model, max_slots=4)
    things = [engine, engine.tenant("t"), engine.tenant("t").session(), engine.tenant("t").session().stream("the")]
    wanted = engine.generate("the", max_tokens=4).token_ids

    def work():
        with engine:
            pass  # leaving does nothing
        engine.close()
        things.clear()
        with zinc_rt.Engine(tiny_model) as own:
            return own.generate("the", max_tokens=4).token_ids

    assert in_child(work) == str(wanted)
    engine.close()


def _of_pool(_):
    try:
        return _OF_PARENT.generate("the").text
    except errors.Unavailable as error:
        return str(error)


_OF_PARENT = None


def test_a_pool_of_forked_workers(tiny_engine):
    global _OF_PARENT
    _OF_PARENT = tiny_engine
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert "spawn" in pool.map_async(_of_pool, [0]).get(60)[0]


def test_a_child_that_ends_as_a_program_does(tiny_model):
    """Its handlers at exit run, while calls and callbacks are under way in the parent."""
    code = textwrap.dedent(f"""
        import os, sys, threading, time, zinc_rt
        engine = zinc_rt.Engine({str(tiny_model)!r})
        session = engine.tenant("t", zinc_rt.TenantQuota(decode_tokens_per_s=0.1)).session()
        inside = threading.Event()
        def on_event(event):
            inside.set()
            time.sleep(5)
        handle = session.submit("the", max_tokens=50, ignore_eos=True, on_event=on_event)
        waiter = threading.Thread(target=lambda: session.generate("an", max_tokens=50, ignore_eos=True), daemon=True)
        waiter.start()
        inside.wait()
        pid = os.fork()
        if pid == 0:
            sys.exit(7)
        for _ in range(300):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                print("child", os.waitstatus_to_exitcode(status), flush=True)
                os._exit(0)
            time.sleep(0.1)
        os.kill(pid, 9)
        os._exit(1)
    """)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout == "child 7\n", run.stderr
