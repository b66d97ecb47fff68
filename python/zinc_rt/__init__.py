"""ZINC_RT from Python: the native engine's own objects.

>>> with zinc_rt.Engine("model.gguf") as engine:
...     print(engine.generate("The capital of France is", max_tokens=8).text)
"""

from . import errors
from ._core import (
    ChatTemplate,
    Completion,
    Difference,
    Engine,
    RequestHandle,
    Session,
    Stream,
    StreamEvent,
    Tenant,
    TenantQuota,
    Timings,
    Tokenizer,
    TokenLogprob,
    Usage,
    ValidateReport,
    __version__,
    validate,
)
from ._exit import install as _close_at_exit
from ._facade import Conversation
from ._facade import install as _install_facade
from ._stream import install as _install
from ._trace import trace as _trace
from .client import AsyncClient
from .ledger import TenantLedger

_install(Stream, Session)
_install_facade(Engine)
_close_at_exit(Engine)
Engine.trace = _trace

__all__ = [
    "AsyncClient",
    "ChatTemplate",
    "Completion",
    "Conversation",
    "Difference",
    "Engine",
    "RequestHandle",
    "Session",
    "Stream",
    "StreamEvent",
    "Tenant",
    "TenantLedger",
    "TenantQuota",
    "Timings",
    "TokenLogprob",
    "Tokenizer",
    "Usage",
    "ValidateReport",
    "__version__",
    "errors",
    "validate",
]
