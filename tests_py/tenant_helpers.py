"""Requests that keep their slots, for tests of what others do meanwhile.

A tenant whose decode rate is next to nothing keeps a request in its slot for as long as a test needs.
"""

import os
import time

from zinc_rt import TenantQuota

FREE = {"ignore_eos": True}


HASHED = {"ignore_eos": True, "return_logits_hash": True}


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
