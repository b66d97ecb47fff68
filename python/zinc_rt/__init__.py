"""ZINC_RT from Python: the native engine's own objects.

>>> with zinc_rt.Engine("model.gguf") as engine:
...     print(engine.generate("The capital of France is", max_tokens=8).text)
"""

from . import _install as _install  # first: it completes the classes of _core
from . import errors
from ._core import ChatTemplate, Engine, RequestHandle, Session, Stream, Tenant, Tokenizer, __version__, validate
from ._facade import Conversation
from .client import AsyncClient
from .ledger import TenantLedger
from .quota import TenantQuota
from .report import Difference, ValidateReport
from .results import Completion, OutputPiece, StreamEvent, Timings, TokenLogprob, ToolCall, Usage
from .timeline import Timeline

__all__ = [
    "AsyncClient",
    "ChatTemplate",
    "Completion",
    "Conversation",
    "Difference",
    "Engine",
    "OutputPiece",
    "RequestHandle",
    "Session",
    "Stream",
    "StreamEvent",
    "Tenant",
    "TenantLedger",
    "TenantQuota",
    "Timeline",
    "Timings",
    "TokenLogprob",
    "Tokenizer",
    "ToolCall",
    "Usage",
    "ValidateReport",
    "__version__",
    "errors",
    "validate",
]
