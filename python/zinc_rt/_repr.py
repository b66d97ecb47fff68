"""What native objects say of themselves."""

from . import _core, errors


def _engine(engine) -> str:
    if engine.closed:
        return "<zinc_rt.Engine, closed>"
    try:
        total = engine.stats()
        models = ", ".join(engine.models)
    except errors.ZincError as error:
        return f"<zinc_rt.Engine, {error}>"
    slots = f"{total['slots'] - total['slots_free']} of {total['slots']} slots in use, {total['waiting']} waiting"
    return f"<zinc_rt.Engine {models} on {engine.tier}, {engine.arithmetic} arithmetic: {slots}>"


def _tenant(tenant) -> str:
    quota = tenant.quota
    try:
        ledger = tenant.ledger()
    except errors.ZincError as error:
        return f"<zinc_rt.Tenant {tenant.name!r}, {error}>"
    slots = f"{ledger.slots_now} of {quota.max_concurrent_slots} slots in use, {ledger.waiting_now} waiting"
    return f"<zinc_rt.Tenant {tenant.name!r}, {quota.qos_class}: {slots}, {ledger.tokens_generated} tokens generated>"


def _session(session) -> str:
    system = f", system {session.system!r}" if session.system else ""
    return f"<zinc_rt.Session of tenant {session.tenant_name!r}{system}>"


def _generation(generation) -> str:
    made = generation.completion
    state = made.finish_reason or "running"
    return f"<zinc_rt.{type(generation).__name__}, {state}: {made.usage.completion_tokens} tokens, {made.text[-40:]!r}>"


def _tokenizer(tokenizer) -> str:
    ends = tokenizer.end_of_generation_ids
    return f"<zinc_rt.Tokenizer of {tokenizer.n_vocab} tokens, bos {tokenizer.bos_id}, ends {ends}>"


def install() -> None:
    _core.Engine.__repr__ = _engine
    _core.Tenant.__repr__ = _tenant
    _core.Session.__repr__ = _session
    _core.Stream.__repr__ = _generation
    _core.RequestHandle.__repr__ = _generation
    _core.Tokenizer.__repr__ = _tokenizer
