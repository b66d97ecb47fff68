"""Types of the native module. All calls release the GIL while the engine works."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, TypedDict, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

from ._facade import Conversation
from .ledger import TenantLedger

__version__: str

def cli(arguments: Sequence[str]) -> int: ...

class Tokenizer:
    def __init__(self, path: str) -> None: ...
    def encode(self, text: str, add_special: bool = True, parse_special: bool = True) -> list[int]: ...
    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str: ...
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

class TokenLogprob:
    token_id: int
    logprob: float  # nan: a prompt's first token
    top: list[tuple[int, float]]

class Usage:
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int

class Timings:
    queue_ms: float
    prefill_ms: float
    decode_ms: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    clamps: list[str]

class Completion:
    text: str
    token_ids: list[int]
    finish_reason: str
    logprobs: list[TokenLogprob]
    prompt_logprobs: list[TokenLogprob]
    logits_hashes: list[int]
    seed: int
    usage: Usage
    timings: Timings
    choices: list[Completion]

class StreamEvent:
    @property
    def token_id(self) -> int | None: ...
    text: str
    preempted: bool
    index: int
    logprob: TokenLogprob | None

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

# How to generate, each with its default; of Session.generate and all that call it.
class _Parameters(TypedDict, total=False):
    tools: Sequence[dict[str, Any]] | None  # None
    chat_template_kwargs: dict[str, Any] | None  # None
    add_generation_prompt: bool | None  # None
    continue_final_message: bool  # False
    model: str | None  # None
    qos: str | None  # None
    cache_salt: str | None  # None
    request_id: str | None  # None
    traceparent: str | None  # None
    max_tokens: int  # 128
    min_tokens: int  # 0
    temperature: float  # 0.0
    top_k: int  # 0
    top_p: float  # 1.0
    min_p: float  # 0.0
    typical_p: float  # 1.0
    repetition_penalty: float  # 1.0
    presence_penalty: float  # 0.0
    frequency_penalty: float  # 0.0
    logit_bias: dict[int, float] | None  # None
    seed: int | None  # None
    stop: str | Sequence[str] | None  # ()
    include_stop_str_in_output: bool  # False
    stop_token_ids: Sequence[int]  # ()
    ignore_eos: bool  # False
    skip_special_tokens: bool  # True
    logprobs: int  # 0
    prompt_logprobs: int | None  # None
    n: int  # 1
    return_logits_hash: bool  # False
    deadline_ms: float | None  # None
    stream_capacity: int | None  # None

class Session:
    def generate(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[int] | None = None,
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
        model: str | None = None,
        qos: str | None = None,
        cache_salt: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        max_tokens: int = 128,
        min_tokens: int = 0,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        typical_p: float = 1.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: dict[int, float] | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = (),
        include_stop_str_in_output: bool = False,
        stop_token_ids: Sequence[int] = (),
        ignore_eos: bool = False,
        skip_special_tokens: bool = True,
        logprobs: int = 0,
        prompt_logprobs: int | None = None,
        n: int = 1,
        return_logits_hash: bool = False,
        deadline_ms: float | None = None,
        stream_capacity: int | None = None,
    ) -> Completion: ...
    def stream(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[int] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> Stream: ...
    def astream(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[int] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> AsyncIterator[StreamEvent]: ...
    async def agenerate(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[int] | None = None,
        **parameters: Unpack[_Parameters],
    ) -> Completion: ...
    def submit(
        self,
        prompt: str | None = None,
        messages: Sequence[dict[str, Any]] | None = None,
        token_ids: Sequence[int] | None = None,
        *,
        on_event: Callable[[StreamEvent], object],
        **parameters: Unpack[_Parameters],
    ) -> RequestHandle: ...

class TenantQuota:
    def __init__(
        self,
        *,
        max_concurrent_slots: int = 4,
        max_kv_pages: int = 4096,
        reserved_kv_pages: int = 0,
        max_context_tokens: int = 128000,
        decode_tokens_per_s: float = 1000.0,
        prefill_tokens_per_s: float = 100000.0,
        weight: float = 1.0,
        qos_class: str = "standard",
        isolation_group: str | None = None,
    ) -> None: ...
    max_concurrent_slots: int
    max_kv_pages: int
    reserved_kv_pages: int
    max_context_tokens: int
    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    weight: float
    qos_class: str
    isolation_group: str | None

class Tenant:
    @property
    def name(self) -> str: ...
    quota: TenantQuota
    def ledger(self) -> TenantLedger: ...
    def flush_prefix_cache(self) -> int: ...
    def session(self, system: str | None = None) -> Session: ...

# The options of a model when it is opened, each with its default; None: the engine chooses.
class _ModelOptions(TypedDict, total=False):
    max_slots: int  # 64
    kv_pages: int | None
    max_context: int | None
    kv_dtype: str | None
    threads: int | None
    arithmetic: str | None
    activations: str  # "int8"
    chunk_cap: int | None
    fusion: str | None
    cpu_kernels: str | None
    repack: bool  # True
    mmap: bool  # True
    prefix_cache: bool  # True
    standard_gap_ms: int  # 60
    queue_cap: int  # 1024
    on_progress: Callable[[int, int], None] | None

class Engine:
    def __init__(
        self,
        model: str | PathLike[str],
        tier: str = "auto",
        *,
        max_models: int | None = None,
        **options: Unpack[_ModelOptions],
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
    def start_trace(self, n_records: int = 1 << 18) -> None: ...
    def stop_trace(self, path: str | PathLike[str]) -> None: ...
    def trace(self, path: str | PathLike[str], n_records: int = 1 << 18) -> AbstractContextManager[Engine]: ...
    @property
    def tier(self) -> str: ...
    @property
    def arithmetic(self) -> str: ...
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
    def detokenize(self, ids: Sequence[int], skip_special: bool = False, model: str | None = None) -> str: ...
    def apply_template(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        model: str | None = None,
        **variables: Any,
    ) -> str: ...
    def logits(
        self, token_ids: Sequence[int], which: str = "all", chunk: int | None = None, model: str | None = None
    ) -> npt.NDArray[np.float32]: ...
    def hidden(self, token_ids: Sequence[int], layer: int, model: str | None = None) -> npt.NDArray[np.float32]: ...
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
    def chat(
        self, messages: Sequence[dict[str, Any]], *, tenant: str | None = None, **parameters: Unpack[_Parameters]
    ) -> Completion: ...
    def conversation(
        self, system: str | None = None, *, tenant: str | None = None, **parameters: Unpack[_Parameters]
    ) -> Conversation: ...

class Difference:
    """Two arrays, value by value."""

    name: str  # "embed", "0", ..., "logits"
    layer: int  # -1: the embeddings; n_layers: the logits
    equal: bool  # within the tolerance
    n_values: int
    n_different: int  # by their bits
    max_abs: float
    mean_abs: float
    histogram: dict[int, int]  # power of ten of |a - b| to the number of values, of those that differ

class ValidateReport:
    equal: bool
    @property
    def sides(self) -> tuple[str, str]: ...
    token_ids: list[int]
    tolerance: float
    layers: list[Difference]
    logits: Difference
    n_rows: int
    n_same_top: int
    def to_json(self) -> dict[str, Any]: ...

def validate(
    model: str | PathLike[str],
    prompt: str | Sequence[int] | None = None,
    tiers: Sequence[str] = ("t_cpu", "t_cpu+fusion=0"),
    layers: str | Sequence[int | str] = "all",
    against: str | PathLike[str] | None = None,
    tolerance: float = 0.0,
) -> ValidateReport: ...
