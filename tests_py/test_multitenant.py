"""Tenants on one engine: several completions of a prompt, the prefix cache, giving way."""

import pytest

import zinc_rt
from tenant_helpers import FREE, HASHED, held, holder, release
from zinc_rt import TenantQuota

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
