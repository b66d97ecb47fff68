"""ZincServer: this engine behind ray.serve.llm, for those who have its LLMConfig and builders in use already.

    LLMConfig(
        server_cls="zinc_rt.ray.llm:ZincServer",
        model_loading_config={"model_id": "chat", "model_source": "/models/model.gguf"},
        engine_kwargs={"max_slots": 32},
    )

ray.serve.llm takes the classes of its requests and answers from vLLM or SGLang, so one of them must be installed; no
other part of it is used. Without either, zinc_rt.ray.app() serves the same endpoints and more.
"""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ray.serve.config import RequestRouterConfig
from ray.serve.request_router import PendingRequest
from starlette.requests import Request

from .. import errors
from .call import Call
from .deployment import MAX_BODY_BYTES, Replica, answer_of, call_of_request
from .router import PrefixRouter

# This module of Ray has the classes of answers. It is not public, but Ray's own servers use it too.
ANSWERS = "ray.llm._internal.serve.core.configs.openai_api_models"
# The only key of engine_kwargs that is not an option of the server; it is an argument of zinc_rt.ray.app().
MAY_BE_OPEN = "may_be_open"


def arguments_of(llm_config) -> list[str]:
    """The arguments of `zinc-rt serve` of an LLMConfig. Each engine_kwargs is an option of it, by the option's name.

    {"max_slots": 32} is --max-slots 32, True is an option that takes no value, a list repeats it; None and False are
    left out.
    """
    loading = llm_config.model_loading_config
    if llm_config.lora_config is not None:
        raise errors.InvalidArgument("[ray] lora_config: adapters are not supported")
    if loading.tokenizer_source is not None:
        raise errors.InvalidArgument("[ray] tokenizer_source: the tokenizer is the model file's")
    if not isinstance(loading.model_source, str | None):
        raise errors.InvalidArgument("[ray] model_source: a path or a name of `zinc-rt models`, and no mirror")
    arguments = [loading.model_source or loading.model_id, "--id", loading.model_id]
    for name, value in llm_config.engine_kwargs.items():
        if name == MAY_BE_OPEN:
            continue
        option = "--" + name.replace("_", "-")
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is True:
                arguments.append(option)
            elif each is not None and each is not False:
                arguments += [option, str(each)]
    return arguments


def call_of(path: str, request: Any, raw_request_info: Any = None) -> Call:
    """The request of a client, from what Ray's ingress made of it: the fields that it had, and its headers."""
    headers = getattr(raw_request_info, "headers", None) or {}
    body = json.dumps(request.model_dump(mode="json", exclude_unset=True), ensure_ascii=False).encode()
    # The body is serialized again, so its length changes.
    raw = [(b"content-type", b"application/json")]
    raw += [
        (name.lower().encode("latin-1"), str(value).encode("latin-1"))
        for name, value in headers.items()
        if name.lower() != "content-type"
    ]
    return Call("POST", path, raw, body)


class LLMPrefixRouter(PrefixRouter):
    """The router of zinc_rt.ray for what Ray's ingress sends: a request of its classes, and the client's headers."""

    def call_of(self, pending_request: PendingRequest | None) -> Call | None:
        if pending_request is None or not pending_request.args or not hasattr(pending_request.args[0], "model_dump"):
            return None
        kept = getattr(pending_request, "zinc_rt_call", None)
        if kept is None:
            kept = pending_request.zinc_rt_call = call_of("", *pending_request.args[:2])
        return kept


def _answering(path: str, answer: str):
    """A method of ZincServer that sends its request to a path; `answer` is Ray's class of what comes back whole."""

    async def method(self, request, raw_request_info=None) -> AsyncIterator[Any]:
        async for each in self._answers(path, answer, request, raw_request_info):
            yield each

    return method


class ZincServer(Replica):
    """What LLMConfig.server_cls names: a replica with a server. Its methods have the names that Ray's ingress calls."""

    def __init__(self, llm_config):
        """Ray starts replicas so. `may_be_open` of engine_kwargs: a server without keys is served, too."""
        self._llm_config = llm_config
        super().__init__(arguments_of(llm_config), bool(llm_config.engine_kwargs.get(MAY_BE_OPEN)))

    async def start(self) -> None:
        """The server runs since this object exists."""

    async def llm_config(self):
        return self._llm_config

    chat = _answering("/v1/chat/completions", "ChatCompletionResponse")
    completions = _answering("/v1/completions", "CompletionResponse")
    embeddings = _answering("/v1/embeddings", "EmbeddingResponse")
    score = _answering("/v1/score", "ScoreResponse")
    tokenize = _answering("/tokenize", "TokenizeResponse")
    detokenize = _answering("/detokenize", "DetokenizeResponse")

    async def transcriptions(self, request, raw_request_info=None) -> AsyncIterator[Any]:
        yield _failure(501, {"message": "[ray] audio is not supported", "type": "not_implemented_error"})

    async def reset_prefix_cache(self) -> None:
        raise errors.InvalidArgument("[ray] reset_prefix_cache: a prefix is forgotten when its memory is wanted")

    async def _answers(self, path: str, answer: str, request, raw_request_info) -> AsyncIterator[Any]:
        """One ErrorResponse, or one answer, or the events of a stream: each piece is text of whole events."""
        pieces = self.server.pass_on(call_of(path, request, raw_request_info))
        status, headers = await anext(pieces)
        if status == 200 and dict(headers).get("content-type", "").startswith("text/event-stream"):
            async for events in _whole_events(pieces):
                yield events
            return
        body = json.loads(b"".join([piece async for piece in pieces]) or b"{}")
        if status != 200:
            yield _failure(status, body.get("error", {}))
        else:
            yield getattr(importlib.import_module(ANSWERS), answer).model_validate(body)

    async def __serve_build_asgi_app__(self):
        """For Ray's direct streaming: everything is passed on, as zinc_rt.ray.app() does it."""
        return self._serve_http

    async def _serve_http(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        answer = await call_of_request(Request(scope, receive), MAX_BODY_BYTES)
        if isinstance(answer, Call):
            pieces = self.server.pass_on(answer)
            status, headers = await anext(pieces)
            answer = answer_of(status, headers, pieces)
        await answer(scope, receive, send)

    @classmethod
    def get_deployment_options(cls, llm_config) -> dict:
        """Options of the deployment. A replica is one process, without a placement group; equal prefixes go to one."""
        if llm_config.placement_group_config:
            raise errors.InvalidArgument("[ray] placement_group_config: give ray_actor_options num_gpus instead")
        options = copy.deepcopy(llm_config.deployment_config)
        options.setdefault(
            "request_router_config",
            RequestRouterConfig(request_router_class=LLMPrefixRouter, request_routing_stats_period_s=1.0),
        )
        actor = options.setdefault("ray_actor_options", {})
        if llm_config.accelerator_type:
            actor.setdefault("num_gpus", 1)
            actor.setdefault("accelerator_type", llm_config.accelerator_type)
        if llm_config.runtime_env:
            actor.setdefault("runtime_env", {}).update(llm_config.runtime_env)
        return options


def _failure(status: int, error: Mapping):
    answers = importlib.import_module(ANSWERS)
    told = answers.ErrorInfo(
        message=error.get("message", f"status {status}"),
        type=error.get("type", "server_error"),
        param=error.get("param"),
        code=status,
    )
    return answers.ErrorResponse(error=told)


async def _whole_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    held = b""
    async for piece in pieces:
        events, end, held = (held + piece).rpartition(b"\n\n")
        if end:
            yield (events + end).decode()
    if held:
        yield held.decode(errors="replace")
