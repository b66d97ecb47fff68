"""What Python adds to the native module, in the order in which it goes around it. Importing this does it."""

from . import _core, _exit, _facade, _html, _repr, _signature, _stream, errors, quota
from ._progress import with_loading_bar
from ._trace import timeline, trace

CLASSES = [
    _core.ChatTemplate,
    _core.Engine,
    _core.RequestHandle,
    _core.Session,
    _core.Stream,
    _core.Tenant,
    _core.Tokenizer,
]
# Classes that users cannot construct; methods of other objects return them.
MADE_BY = {
    _core.RequestHandle: "Session.submit",
    _core.Session: "Tenant.session",
    _core.Stream: "Session.stream",
    _core.Tenant: "Engine.tenant",
}


def _refuse_to_make(kind: type, maker: str) -> None:
    def __init__(self, *_, **__):
        raise errors.InvalidType(f"[{kind.__name__}] it is made by {maker}(), not by its class")

    kind.__init__ = __init__


def _install() -> None:
    engine = _core.Engine
    _stream.install(_core.Stream, _core.Session)
    _facade.install(engine)
    quota.install(_core.Tenant)
    engine.trace, engine.timeline = trace, timeline
    engine.model_card = _html.as_card(engine.model_card, _html.ModelCard)
    engine.memory_plan = _html.as_card(engine.memory_plan, _html.MemoryPlan)
    engine.__init__ = with_loading_bar(engine.__init__)
    engine.add_model = with_loading_bar(engine.add_model)
    _exit.install(engine)
    _repr.install()
    for kind, maker in MADE_BY.items():
        _refuse_to_make(kind, maker)
    _signature.install(CLASSES)
    _core.validate = _signature.checked(_core.validate, _signature.stub().signature(None, "validate"), "validate")


_install()
