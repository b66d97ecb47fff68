"""What native objects say of themselves."""

import functools
import weakref

from . import _core, errors

_made = weakref.WeakSet()  # objects whose constructor has returned


def _notes(make):
    @functools.wraps(make)
    def __init__(self, *args, **kwargs):
        make(self, *args, **kwargs)
        _made.add(self)

    return __init__


def _engine(engine) -> str:
    if engine.closed:
        return "<zinc_rt.Engine, closed>"
    total, models = engine.stats(), ", ".join(engine.models)
    slots = f"{total['slots'] - total['slots_free']} of {total['slots']} slots in use, {total['waiting']} waiting"
    return f"<zinc_rt.Engine {models} on {engine.tier}, {engine.arithmetic} arithmetic: {slots}>"


def _tenant(tenant) -> str:
    quota, ledger = tenant.quota, tenant.ledger()
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


def _or_why_not(words):
    """A repr must not raise, also of an engine that was closed or stayed in the parent of this process.

    Debuggers and tracebacks also show what a constructor failed to make: there is nothing behind it to be asked.
    """

    def __repr__(thing) -> str:
        if type(thing) in (_core.Engine, _core.Tokenizer) and thing not in _made:
            return f"<zinc_rt.{type(thing).__name__}, not open>"
        try:
            return words(thing)
        except errors.ZincError as error:
            return f"<zinc_rt.{type(thing).__name__}, {error}>"

    return __repr__


def install() -> None:
    for kind, words in (
        (_core.Engine, _engine),
        (_core.Tenant, _tenant),
        (_core.Session, _session),
        (_core.Stream, _generation),
        (_core.RequestHandle, _generation),
        (_core.Tokenizer, _tokenizer),
    ):
        kind.__repr__ = _or_why_not(words)
    for kind in (_core.Engine, _core.Tokenizer):
        kind.__init__ = _notes(kind.__init__)
