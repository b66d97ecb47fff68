"""Engine.generate, chat, conversation, embed and rerank: working without naming a tenant or a session."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _check, errors
from ._progress import Progress, wants_bar
from ._signature import checks_arguments
from .quota import TenantQuota
from .results import Completion, StreamEvent

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack

    from ._core import Engine, _Parameters

TENANT = "default"
_PLENTY = 1e9  # tokens per second, so high that it is no limit


def _plans(engine) -> list[dict]:
    return [engine.memory_plan(name) for name in engine.models]


def _n_slots(plans: list[dict]) -> int:
    return sum(device["max_slots"] for plan in plans for device in plan["devices"])


def _own_session(engine, tenant):
    """A session of the tenant; of `default`, who may use all slots and pages of the engine's models."""
    if tenant is not None:
        return engine.tenant(tenant).session()
    plans = _plans(engine)
    quota = TenantQuota(
        max_concurrent_slots=_n_slots(plans),
        max_kv_pages=sum(device["kv_pages"] for plan in plans for device in plan["devices"]),
        max_context_tokens=max(plan["max_context"] for plan in plans),
        decode_tokens_per_s=_PLENTY,
        prefill_tokens_per_s=_PLENTY,
    )
    return engine.tenant(TENANT, quota).session()


def _is_token_ids(value) -> bool:
    """Whether it is a sequence of at least one token id."""
    return _check.is_sequence(value) and len(value) > 0 and all(map(_check.is_int, value))


def _one(prompt, where: str, call: str = "Engine.generate") -> dict:
    """The arguments of Session.generate for a text or a list of token ids. where: the prompt's name in errors."""
    if isinstance(prompt, str):
        return {"prompt": prompt}
    if _is_token_ids(prompt):
        return {"token_ids": list(prompt)}
    kind = "an empty list" if _check.is_sequence(prompt) and len(prompt) == 0 else type(prompt).__name__
    raise errors.InvalidArgument(f"[{call}] {where} is {kind}; a str or a list of token ids is wanted")


class _Batch:
    """Several prompts at once, each on a thread that waits for the engine without the interpreter's lock."""

    def __init__(self, session, parameters):
        self.session, self.parameters = session, parameters
        self.lock, self.streams, self.is_over = threading.Lock(), set(), False

    def run(self, arguments) -> Completion:
        with self.lock:
            if self.is_over:
                raise concurrent.futures.CancelledError
            stream = self.session.stream(**arguments, **self.parameters)
            self.streams.add(stream)
        try:
            return stream.finish()
        finally:
            with self.lock:
                self.streams.discard(stream)

    def cancel(self) -> None:
        with self.lock:
            self.is_over = True
            for stream in self.streams:
                stream.cancel()


def _generate_all(engine, session, prompts, progress, parameters) -> list[Completion]:
    batch = _Batch(session, parameters)
    n_threads = min(len(prompts), _n_slots(_plans(engine)))
    bar = Progress(len(prompts), "generating") if wants_bar(progress) else None
    with concurrent.futures.ThreadPoolExecutor(n_threads, "zinc_rt-generate") as pool:
        futures = [pool.submit(batch.run, arguments) for arguments in prompts]
        try:
            tokens = 0
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                tokens += future.result().usage.completion_tokens
                if bar:
                    bar.show(done, tokens)
            return [future.result() for future in futures]
        except BaseException:
            batch.cancel()
            for future in futures:
                future.cancel()
            raise
        finally:
            if bar:
                bar.end()


def generate(engine, prompt, *, tenant: str | None = None, progress: bool | None = None, **parameters):
    """Continues a prompt, or each of several.

    prompt: a str or a list of token ids gives a Completion; a list of these is one batch and gives a list of
    Completions in the same order. The engine runs as many at once as it has slots.
    tenant: whose work it is; None: tenant `default`, who may use the whole engine.
    progress: a bar on stderr for a batch; None: on a terminal and in notebooks.
    parameters: those of Session.generate (max_tokens, temperature, stop, seed, model, ...), for all prompts.

    Raises InvalidArgument for a prompt that is neither, and whatever the first prompt that fails raises; the others are
    cancelled then.
    """
    if isinstance(prompt, str) or _is_token_ids(prompt):
        return _own_session(engine, tenant).generate(**_one(prompt, "prompt"), **parameters)
    prompts = [_one(each, f"prompt[{index}]") for index, each in enumerate(prompt)]
    return _generate_all(engine, _own_session(engine, tenant), prompts, progress, parameters) if prompts else []


def embed(
    engine, texts, dimensions: int | None = None, *, model: str | None = None, tenant: str | None = None
) -> np.ndarray:
    """The embeddings of texts: a float32 array of shape (n, dimensions), each row of length 1.

    texts: a str or a list of token ids is one text; a list of these is several, in the same order.
    dimensions: the first so many of an embedding; None: all.
    tenant: whose work it is; None: tenant `default`, who may use the whole engine.

    A text's row has the same bits alone and among others. Raises InvalidArgument for a model that generates: open it
    with pooling="mean" or "last", or take a file that says how it pools. Also for a text longer than the context.
    """
    several = [texts] if isinstance(texts, str) or _is_token_ids(texts) else texts
    given = [next(iter(_one(each, f"texts[{index}]", "Engine.embed").values())) for index, each in enumerate(several)]
    return _own_session(engine, tenant).embed(given, dimensions, model)


def rerank(
    engine, query: str, documents: list[str], *, model: str | None = None, tenant: str | None = None
) -> list[float]:
    """How well documents answer a query: a score from 0 to 1 for each, in their order, by a cross-encoder.

    tenant: whose work it is; None: tenant `default`, who may use the whole engine.

    A score has the same bits alone and among others. Raises InvalidArgument for a model that is no cross-encoder (its
    pooling is not rank), and for a pair longer than the context. Of a model that embeds, take rows @ rows.T of embed().
    """
    return _own_session(engine, tenant).rerank(query, documents, model)


def chat(engine, messages, *, tenant: str | None = None, **parameters) -> Completion:
    """Answers a conversation: a list of {"role": ..., "content": ...}, through the model's chat template.

    parameters: those of Session.generate. See also conversation(), which keeps the history.
    """
    return _own_session(engine, tenant).generate(messages=messages, **parameters)


class Conversation:
    """A dialogue that keeps its history. One thread at a time.

    messages: the history, a list of {"role", "content"}; it may be read and changed between turns.
    """

    @checks_arguments
    def __init__(
        self, engine: Engine, system: str | None = None, *, tenant: str | None = None, **parameters: Unpack[_Parameters]
    ):
        self._session, self._parameters = _own_session(engine, tenant), parameters
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system is not None else []

    def _turn(self, text: str) -> list[dict]:
        return [*self.messages, {"role": "user", "content": text}]

    def _keep(self, turn: list[dict], answer: str) -> None:
        self.messages = [*turn, {"role": "assistant", "content": answer}]

    @checks_arguments
    def say(self, text: str, **parameters: Unpack[_Parameters]) -> Completion:
        """Says something and returns the answer. The history grows by both, unless this raises."""
        turn = self._turn(text)
        completion = self._session.generate(messages=turn, **{**self._parameters, **parameters})
        self._keep(turn, completion.text)
        return completion

    @checks_arguments
    def stream(self, text: str, **parameters: Unpack[_Parameters]) -> Iterator[StreamEvent]:
        """Says something and yields the events of the answer. A loop that is left keeps what was said so far."""
        turn = self._turn(text)
        with self._session.stream(messages=turn, **{**self._parameters, **parameters}) as stream:
            try:
                yield from stream
            finally:
                self._keep(turn, stream.completion.text)

    @checks_arguments
    def undo(self) -> bool:
        """Takes the last turn back: what was said, and its answer. False: there is none."""
        said = [i for i, message in enumerate(self.messages) if message["role"] == "user"]
        if said:
            del self.messages[said[-1] :]
        return bool(said)

    def __repr__(self) -> str:
        turns = sum(message["role"] == "user" for message in self.messages)
        return f"<zinc_rt.Conversation of {turns} turn{'' if turns == 1 else 's'}>"


def conversation(engine, system: str | None = None, *, tenant: str | None = None, **parameters) -> Conversation:
    """Begins a dialogue that keeps its history. parameters: those of Session.generate, for all turns."""
    return Conversation(engine, system, tenant=tenant, **parameters)


def install(engine_class) -> None:
    """Gives the native class its facade."""
    engine_class.generate = generate
    engine_class.chat = chat
    engine_class.embed = embed
    engine_class.rerank = rerank
    engine_class.conversation = conversation
