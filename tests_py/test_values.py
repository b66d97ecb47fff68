"""Plain values compare, copy and pickle; other objects say what they are."""

import copy
import dataclasses
import pickle
import re

import pytest

import zinc_rt
from tenant_helpers import held, holder, release, until
from zinc_rt import errors


@pytest.fixture(scope="module")
def values(tiny_engine):
    tenant = tiny_engine.tenant("values", zinc_rt.TenantQuota(weight=2.5))
    stream = tenant.session().stream("the", max_tokens=3, logprobs=2, n=2, prompt_logprobs=0, return_logits_hash=True)
    events = list(stream)
    return [
        stream.completion,
        stream.completion.usage,
        stream.completion.timings,
        *events,
        tenant.quota,
        tenant.ledger(),
    ]


def test_values_survive_copies_and_pickles(values, tiny_model):
    report = zinc_rt.validate(tiny_model, [1, 2])
    for value in [*values, report, report.logits]:
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert repr(again) == repr(value) and dataclasses.asdict(again).keys() == dataclasses.asdict(value).keys()
            assert isinstance(value, type(again))
    assert pickle.loads(pickle.dumps(report)).to_json() == report.to_json()
    completion = values[0]
    again = pickle.loads(pickle.dumps(dataclasses.replace(completion, prompt_logprobs=[])))  # nan is not itself
    assert [c.token_ids for c in again.choices] == [c.token_ids for c in completion.choices] and len(again.choices) == 2
    assert again.logprobs == completion.logprobs and again.logits_hashes == completion.logits_hashes


def test_errors_survive_pickles():
    for error in (
        errors.InvalidType("a"),
        errors.InvalidArgument("a"),
        errors.NotFound("a"),
        errors.Exhausted("a", 2.5),
        errors.Unavailable("a"),
        errors.Corrupt("a"),
        errors.Internal("a"),
    ):
        for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(again) is type(error) and str(again) == "a"
            assert getattr(again, "retry_after", None) == getattr(error, "retry_after", None)


def test_a_results_fields_are_fixed(values):
    with pytest.raises(dataclasses.FrozenInstanceError):
        values[0].text = "b"


def test_a_field_of_a_tenants_quota_changes_the_tenant(tiny_engine):
    tenant = tiny_engine.tenant("quota-fields", zinc_rt.TenantQuota(max_concurrent_slots=3))
    early = tenant.quota
    tenant.quota.weight = 2.0
    assert tenant.quota.weight == 2.0 and tenant.quota.max_concurrent_slots == 3
    early.max_concurrent_slots = 2  # what others set meanwhile stays
    assert (tenant.quota.weight, tenant.quota.max_concurrent_slots) == (2.0, 2) and early == tenant.quota
    with pytest.raises(errors.InvalidArgument, match="weight 0"):
        tenant.quota.weight = 0.0
    with pytest.raises(errors.InvalidType, match="wieght is no field"):
        tenant.quota.wieght = 1.0
    assert tenant.quota.weight == 2.0
    free = copy.copy(tenant.quota)
    free.weight = 9.0
    assert tenant.quota.weight == 2.0 and tenant.quota != free
    dataclasses.replace(tenant.quota, weight=7.0)
    assert tenant.quota.weight == 2.0


def test_a_field_that_is_set_holds_for_what_runs(tiny_engine):
    tenant = holder(tiny_engine, "quota-holds", max_concurrent_slots=1)
    first = held(tenant)
    second = tenant.session().stream("the", max_tokens=2)
    until(lambda: tenant.ledger().waiting_now == 1)
    tenant.quota.max_concurrent_slots = 2
    until(lambda: tenant.ledger().waiting_now == 0)
    release(tenant)
    assert first.finish().finish_reason == "length" and second.finish()


def test_objects_say_what_they_are(tiny_model):
    engine = zinc_rt.Engine(tiny_model, max_slots=4)
    tenant = holder(engine, "al'ice", qos_class="interactive")
    session = tenant.session(system="be brief")
    assert re.fullmatch(
        r"<zinc_rt.Engine tiny on t_cpu, exact arithmetic: 0 of 4 slots in use, 0 waiting>", repr(engine)
    )
    stream = held(tenant)
    assert "1 of 4 slots in use" in repr(engine)
    assert re.fullmatch(
        r"""<zinc_rt.Tenant "al'ice", interactive: 1 of 4 slots in use, 0 waiting, \d+ tokens generated>""",
        repr(tenant),
    )
    assert repr(session) == """<zinc_rt.Session of tenant "al'ice", system 'be brief'>"""
    assert (session.system, session.tenant_name, tenant.session().system) == ("be brief", "al'ice", None)
    assert re.match(r"<zinc_rt.Stream, running: \d+ tokens, '", repr(stream))
    release(tenant)
    completion = stream.finish()
    assert re.match(r"<zinc_rt.Stream, length: 40 tokens, '", repr(stream))
    assert re.fullmatch(
        r"Completion\(text='.*', finish_reason='length', prompt_tokens=3, completion_tokens=40\)", repr(completion)
    )
    assert repr(zinc_rt.Tokenizer(tiny_model)).startswith("<zinc_rt.Tokenizer of 448 tokens, bos ")
    assert "max_concurrent_slots=4" in repr(tenant.quota) and "TenantQuota(" in repr(tenant.quota)
    assert repr(tenant.ledger()).startswith("TenantLedger(tokens_prompted=")
    engine.close()
    assert repr(engine) == "<zinc_rt.Engine, closed>"
    assert "closed" in repr(tenant) or "al'ice" in repr(tenant)


def test_what_could_not_be_opened_says_so(tmp_path):
    """As tracebacks show it."""
    for kind in (zinc_rt.Engine, zinc_rt.Tokenizer):
        with pytest.raises(errors.NotFound) as raised:
            kind(tmp_path / "none.gguf")
        shown = [frame.frame.f_locals["self"] for frame in raised.traceback if "self" in frame.frame.f_locals]
        assert shown and {repr(thing) for thing in shown} == {f"<zinc_rt.{kind.__name__}, not open>"}


def test_loading_shows_a_bar_where_it_is_asked_for(tiny_model, capfd):
    seen = []
    with zinc_rt.Engine(tiny_model, progress=True, on_progress=lambda done, total: seen.append(done)) as engine:
        said = capfd.readouterr().err
        assert "loading tiny.gguf [##############################] " in said and said.endswith(" s\n") and seen
        engine.add_model(tiny_model, "second", progress=True)
        assert "loading tiny.gguf" in capfd.readouterr().err
    for quiet in ({}, {"progress": False}):
        zinc_rt.Engine(tiny_model, **quiet).close()
        assert capfd.readouterr().err == ""
