"""Types of the native module. All calls release the GIL while the engine works.

When the package is imported, it reads this file: signatures and checks of arguments come from here (_signature.py).
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Literal, TypedDict, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

from ._facade import Conversation
from ._types import Int32, LogitsProcessor, TokenId, UInt32, UInt64
from .ledger import TenantLedger
from .quota import TenantQuota
from .report import ValidateReport
from .results import Completion, StreamEvent
from .timeline import Timeline

__version__: str

def cli(arguments: Sequence[str]) -> int: ...
def choose_replica(replicas: Sequence[tuple[int, int]], key: int) -> int: ...
def placement_key(tenant: bytes, cache_salt: bytes, prompt: bytes) -> int: ...

class Tokenizer:
    def __init__(self, path: str | PathLike[str]) -> None: ...
    def encode(self, text: str, add_special: bool = True, parse_special: bool = True) -> list[int]: ...
    def decode(self, ids: Sequence[TokenId], skip_special: bool = False) -> str: ...
    @property
    def n_vocab(self) -> int: ...
    @property
    def bos_id(self) -> int | None: ...
    @property
    def eos_id(self) -> int | None: ...
    @property
    def end_of_generation_ids(self) -> list[int]: ...

class ChatTemplate:
    def __init__(self, source: str) -> None: ...
    def render(self, **variables: Any) -> str: ...

class Stream(Iterator[StreamEvent], AsyncIterator[StreamEvent]):
    def __next__(self) -> StreamEvent: ...
    async def __anext__(self) -> StreamEvent: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *args: object) -> None: ...
    async def __aenter__(self) -> Stream: ...
    async def __aexit__(self, *args: object) -> None: ...
    def cancel(self) -> None: ...
    def fileno(self) -> int: ...
    def finish(self) -> Completion: ...
    @property
    def completion(self) -> Completion: ...

class RequestHandle:
    def cancel(self) -> None: ...
    def wait(self, timeout_s: float | None = None) -> bool: ...
    @property
    def is_done(self) -> bool: ...
    @property
    def completion(self) -> Completion: ...

# The keyword arguments of Session.generate, and of all methods that pass them on to it. Each comment is a default.
class _Parameters(TypedDict, total=False):
    tools: Sequence[dict[str, Any]] | None  # None
    chat_template_kwargs: dict[str, Any] | None  # None
    add_generation_prompt: bool | None  # None
    continue_final_message: bool  # False
    model: str | None  # None
    qos: Literal["interactive", "standard", "batch"] | None  # None
    cache_salt: str | None  # None
    request_id: str | None  # None
    traceparent: str | None  # None
    max_tokens: UInt32  # 128
    min_tokens: UInt32  # 0
    temperature: float  # 0.0
    top_k: UInt32  # 0
    top_p: float  # 1.0
    min_p: float  # 0.0
    typical_p: float  # 1.0
    repetition_penalty: float  # 1.0
    presence_penalty: float  # 0.0
    frequency_penalty: float  # 0.0
    logit_bias: dict[TokenId, float] | None  # None
    logits_processor: LogitsProcessor | Sequence[LogitsProcessor] | None  # None
    seed: UInt64 | None  # None
    stop: str | Sequence[str] | None  # ()
    include_stop_str_in_output: bool  # False
    stop_token_ids: Sequence[TokenId]  # ()
    ignore_eos: bool  # False
    skip_special_tokens: bool  # True
    parse_output: bool | None  # None: where tools are given
    max_tool_calls: UInt32  # 0
    tool_choice: str | None  # None: as the model likes; "required", or a tool's name
    response_format: dict[str, Any] | None  # None; json_object, json_schema, structural_tag
    regex: str | None  # None
    choice: Sequence[str] | None  # None
    grammar: str | None  # None; GBNF
    logprobs: UInt32  # 0
    prompt_logprobs: UInt32 | None  # None
    n: UInt32  # 1
    speculate: str | None  # None
    prediction: str | None  # None
    prediction_token_ids: Sequence[TokenId]  # ()
    return_logits_hash: bool  # False
    deadline_ms: float | None  # None
    stream_capacity: UInt32 | None  # None

class Session:
    def save(
        self,
        path: str | PathLike[str],
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        model: str | None = None,
    ) -> int: ...
    def cached(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        model: str | None = None,
        cache_salt: str | None = None,
    ) -> tuple[int, int]: ...
    def embed(
        self,
        texts: Sequence[str | Sequence[TokenId]],
        dimensions: UInt32 | None = None,
        model: str | None = None,
    ) -> npt.NDArray[np.float32]: ...
    def rerank(self, query: str, documents: Sequence[str], model: str | None = None) -> list[float]: ...
    def load(self, path: str | PathLike[str], *, model: str | None = None, cache_salt: str | None = None) -> int: ...
    @property
    def tenant_name(self) -> str: ...
    @property
    def system(self) -> str | None: ...
    def generate(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        model: str | None = None,
        qos: Literal["interactive", "standard", "batch"] | None = None,
        cache_salt: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        max_tokens: UInt32 = 128,
        min_tokens: UInt32 = 0,
        temperature: float = 0.0,
        top_k: UInt32 = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        typical_p: float = 1.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: dict[TokenId, float] | None = None,
        logits_processor: LogitsProcessor | Sequence[LogitsProcessor] | None = None,
        seed: UInt64 | None = None,
        stop: str | Sequence[str] | None = (),
        include_stop_str_in_output: bool = False,
        stop_token_ids: Sequence[TokenId] = (),
        ignore_eos: bool = False,
        skip_special_tokens: bool = True,
        parse_output: bool | None = None,
        max_tool_calls: UInt32 = 0,
        tool_choice: str | None = None,
        response_format: dict[str, Any] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: str | None = None,
        logprobs: UInt32 = 0,
        prompt_logprobs: UInt32 | None = None,
        n: UInt32 = 1,
        speculate: str | None = None,
        prediction: str | None = None,
        prediction_token_ids: Sequence[TokenId] = (),
        return_logits_hash: bool = False,
        deadline_ms: float | None = None,
        stream_capacity: UInt32 | None = None,
    ) -> Completion: ...
    def stream(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> Stream: ...
    def astream(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> AsyncIterator[StreamEvent]: ...
    async def agenerate(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> Completion: ...
    def submit(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[TokenId] | None = None,
        *,
        on_event: Callable[[StreamEvent], object],
        **parameters: Unpack[_Parameters],
    ) -> RequestHandle: ...

class Tenant:
    @property
    def name(self) -> str: ...
    quota: TenantQuota
    def ledger(self) -> TenantLedger: ...
    def flush_prefix_cache(self) -> int: ...
    def session(self, system: str | None = None) -> Session: ...

# The options with which a model is opened. Each comment is a default; None: the engine chooses.
class _ModelOptions(TypedDict, total=False):
    backend: Literal["zinc_rt", "vulkan"] | None
    devices: Sequence[UInt32] | None  # [0]
    max_slots: UInt32  # 64
    kv_pages: UInt32 | None
    max_context: UInt32 | None
    kv_dtype: Literal["f16", "f32", "q8_0", "k8v4", "k4v4", "i16"] | None
    pooling: Literal["none", "mean", "cls", "last", "rank"] | None  # but for none: it generates nothing
    threads: UInt32 | None
    arithmetic: Literal["exact", "fast"] | None
    activations: Literal["int8", "f32"]  # "int8"
    tools: Literal["hermes"] | None
    control_tokens_in_text: bool  # False
    chunk_cap: UInt32 | None
    run_ahead: bool  # True
    fusion: str | None
    cpu_kernels: str | None
    repack: bool  # True
    mmap: bool  # True
    prefix_cache: bool  # True
    speculate: str | None
    draft_model: str | None
    standard_gap_ms: UInt32  # 60
    queue_cap: UInt32  # 1024
    progress: bool | None  # a bar on stderr; None: on a terminal and in notebooks
    on_progress: Callable[[int, int], None] | None  # bytes of weights made ready, and of all

class Engine:
    def __init__(
        self,
        model: str | PathLike[str],
        tier: str = "auto",
        *,
        max_models: UInt32 | None = None,
        backend: Literal["zinc_rt", "vulkan"] | None = None,
        devices: Sequence[UInt32] | None = None,
        max_slots: UInt32 = 64,
        kv_pages: UInt32 | None = None,
        max_context: UInt32 | None = None,
        kv_dtype: Literal["f16", "f32", "q8_0", "k8v4", "k4v4", "i16"] | None = None,
        pooling: Literal["none", "mean", "cls", "last", "rank"] | None = None,
        threads: UInt32 | None = None,
        arithmetic: Literal["exact", "fast"] | None = None,
        activations: Literal["int8", "f32"] = "int8",
        tools: Literal["hermes"] | None = None,
        control_tokens_in_text: bool = False,
        chunk_cap: UInt32 | None = None,
        run_ahead: bool = True,
        fusion: str | None = None,
        cpu_kernels: str | None = None,
        repack: bool = True,
        mmap: bool = True,
        prefix_cache: bool = True,
        speculate: str | None = None,
        draft_model: str | None = None,
        standard_gap_ms: UInt32 = 60,
        queue_cap: UInt32 = 1024,
        progress: bool | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None: ...
    def __enter__(self) -> Engine: ...
    def __exit__(self, *args: object) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def add_model(
        self,
        path: str | PathLike[str],
        name: str,
        tier: str = "auto",
        **options: Unpack[_ModelOptions],
    ) -> None: ...
    def remove_model(self, name: str) -> None: ...
    @property
    def models(self) -> list[str]: ...
    def drain(self, timeout_s: float | None = None) -> bool: ...
    def start_trace(self, n_records: UInt32 = 262144) -> None: ...
    def stop_trace(self, path: str | PathLike[str]) -> None: ...
    def trace(self, path: str | PathLike[str], n_records: UInt32 = 262144) -> AbstractContextManager[Engine]: ...
    def timeline(self, n_records: UInt32 = 262144) -> AbstractContextManager[Timeline]: ...
    @property
    def tier(self) -> str: ...
    @property
    def arithmetic(self) -> str: ...
    @property
    def arithmetic_version(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def model_dim(self) -> int: ...
    # Here and below `model` is the name of a model; None: the first one.
    def model_card(self, model: str | None = None) -> dict[str, Any]: ...
    def memory_plan(self, model: str | None = None) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...
    def tokenize(
        self, text: str, add_special: bool = True, parse_special: bool = True, model: str | None = None
    ) -> list[int]: ...
    def detokenize(self, ids: Sequence[TokenId], skip_special: bool = False, model: str | None = None) -> str: ...
    def apply_template(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        model: str | None = None,
        **variables: Any,
    ) -> str: ...
    def logits(
        self,
        token_ids: Sequence[TokenId],
        which: Literal["all", "last"] = "all",
        chunk: UInt32 | None = None,
        model: str | None = None,
    ) -> npt.NDArray[np.float32]: ...
    def hidden(
        self, token_ids: Sequence[TokenId], layer: Int32, model: str | None = None
    ) -> npt.NDArray[np.float32]: ...
    def tenant(self, name: str, quota: TenantQuota | None = None) -> Tenant: ...
    @overload
    def generate(
        self,
        prompt: str | list[int],
        *,
        tenant: str | None = None,
        progress: bool | None = None,
        **parameters: Unpack[_Parameters],
    ) -> Completion: ...
    @overload
    def generate(
        self,
        prompt: list[str] | list[list[int]] | tuple[str | list[int], ...],
        *,
        tenant: str | None = None,
        progress: bool | None = None,
        **parameters: Unpack[_Parameters],
    ) -> list[Completion]: ...
    def embed(
        self,
        texts: str | Sequence[str | Sequence[TokenId]] | Sequence[TokenId],
        dimensions: UInt32 | None = None,
        *,
        model: str | None = None,
        tenant: str | None = None,
    ) -> npt.NDArray[np.float32]: ...
    def rerank(
        self, query: str, documents: list[str], *, model: str | None = None, tenant: str | None = None
    ) -> list[float]: ...
    def chat(
        self, messages: Sequence[dict[str, Any]], *, tenant: str | None = None, **parameters: Unpack[_Parameters]
    ) -> Completion: ...
    def conversation(
        self, system: str | None = None, *, tenant: str | None = None, **parameters: Unpack[_Parameters]
    ) -> Conversation: ...

def validate(
    model: str | PathLike[str],
    prompt: str | Sequence[TokenId] | None = None,
    tiers: Sequence[str] = ("t_cpu", "t_cpu+fusion=0"),
    layers: str | Sequence[int | str] = "all",
    against: str | PathLike[str] | None = None,
    tolerance: float = 0.0,
) -> ValidateReport: ...
