"""Waiting, refusals and ends: quotas, rates, full queues, deadlines, cancelling."""

import time

import pytest

import zinc_rt
from tenant_helpers import FREE, held, holder, rest, until
from zinc_rt import TenantQuota, errors


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
        ({"max_concurrent_slots": 0}, errors.InvalidArgument, "max_concurrent_slots is 0, at least 1 wanted"),
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
