"""The two deployments: replicas, which each have a server, and the ingress, which reads requests that are to be routed.

Serve's proxy passes an ingress no body before it has chosen one of its replicas, and a prefix is in the body. So the
deployment that takes HTTP is small, and its handle of the other one has the router.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from typing import Literal

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from .. import errors
from .call import Call
from .router import PrefixRouter
from .server import Server, refuse_own_options

log = logging.getLogger("ray.serve")
# Serve sends a replica at most this many requests at once. The number is large because the server has its own queue and
# classes.
MOST_AT_ONCE = 4096
MAX_BODY_BYTES = 1 << 27
LOAD_FIELDS = ("running", "waiting", "backlog_tokens", "free_pages", "pages")
# Serve's proxy writes these headers itself; its request id is the one that was sent to the server.
PROXY_WRITES = {"date", "x-request-id"}


class Replica:
    """A server on loopback, whose answers it passes on."""

    def __init__(self, arguments: Sequence[str], may_be_open: bool | Literal["loopback"]):
        self.server = Server(arguments, self._server_ended, may_be_open is True)
        self.n_told = 0
        if not may_be_open and not self.server.wants_keys():
            raise errors.InvalidArgument("[ray] there is no key, and whoever reaches Serve's address would be an admin")

    async def __call__(self, call: Call) -> AsyncIterator[tuple[int, list[tuple[str, str]]] | bytes]:
        async for piece in self.server.pass_on(call):
            yield piece

    async def check_health(self) -> None:
        await self.server.check()

    async def record_routing_stats(self) -> dict:
        load = await self.server.load()
        self.n_told += 1
        # The number makes each report different, because Serve tells routers only of changes.
        return {"number": self.n_told, "load": {name: load[name] for name in LOAD_FIELDS}}

    async def where(self) -> dict:
        """For those who look for a replica's server: its process and its ports on loopback."""
        return {"pid": self.server.process.pid, "port": self.server.port, "metrics_port": self.server.metrics_port}

    def _server_ended(self, code: int) -> None:
        # Ray notices the end of an actor at once, sends requests that have not begun to another replica, and starts a
        # new actor.
        log.error("[ray] zinc-rt serve ended with %d; so does its replica", code)
        os._exit(1)

    def __del__(self):
        if hasattr(self, "server"):
            self.server.stop()


class Ingress:
    """Takes requests whole, has them routed, and passes on what comes back."""

    def __init__(self, replicas: DeploymentHandle, max_body_bytes: int):
        self.replicas, self.max_body_bytes = replicas.options(stream=True), max_body_bytes

    async def __call__(self, request: Request) -> Response:
        call = await call_of_request(request, self.max_body_bytes)
        if isinstance(call, Response):
            return call
        answer = self.replicas.remote(call)
        try:
            status, headers = await anext(answer)
        except Exception as error:
            log.warning("[ray] a request got no answer: %s", error)
            return _failure(503, "[ray] the replica failed before it answered; try again")
        return answer_of(status, headers, _pieces(answer, dict(headers).get("content-type", "")))


async def call_of_request(request: Request, max_body_bytes: int) -> Call | Response:
    """The request whole, or the answer to one that is too large or whose client has gone."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > max_body_bytes:
                return _failure(413, f"[ray] the body has more than {max_body_bytes} bytes")
    except ClientDisconnect:
        return Response(status_code=499)
    return Call(request.method, _target(request), request.headers.raw, bytes(body))


def answer_of(status: int, headers: list[tuple[str, str]], pieces: AsyncIterator[bytes]) -> Response:
    response = StreamingResponse(pieces, status)
    response.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers if name not in PROXY_WRITES
    ]
    return response


async def _pieces(answer, content_type: str) -> AsyncIterator[bytes]:
    is_whole = False
    try:
        async for piece in answer:
            yield piece
        is_whole = True
    except Exception as error:
        log.warning("[ray] an answer is cut off: %s", error)
        if not (end := _cut_off(content_type)):
            raise
        yield end
        is_whole = True
    finally:
        if not is_whole:
            answer.cancel()  # the client has disconnected


def _error(status: int, message: str) -> dict:
    return {"message": message, "type": "server_error" if status >= 500 else "invalid_request_error", "code": status}


def _failure(status: int, message: str) -> Response:
    headers = {"retry-after": "1"} if status == 503 else {}
    body = json.dumps({"error": _error(status, message)})
    return Response(body, status, headers, media_type="application/json")


def _cut_off(content_type: str) -> bytes:
    """How a stream says that it failed, as clients of the APIs understand it; nothing where it cannot say so."""
    error = _error(503, "[ray] the replica failed; the answer is cut off")
    if content_type.startswith("text/event-stream"):
        return b"event: error\ndata: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n"
    if content_type.startswith("application/x-ndjson"):
        return json.dumps({"error": error["message"]}).encode() + b"\n"
    return b""


def _target(request: Request) -> str:
    """The path as the client wrote it, behind the prefix of the application, and the query."""
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    prefix = request.scope.get("root_path", "").encode()
    if prefix and path.startswith(prefix):
        path = path[len(prefix) :]
    query = request.scope.get("query_string", b"")
    return ((path or b"/") + (b"?" + query if query else b"")).decode("latin-1")


def app(
    model: str | None = None,
    *,
    replicas: int = 1,
    arguments: Sequence[str] = (),
    ingresses: int = 1,
    num_cpus: float = 0.1,
    num_gpus: float = 0,
    may_be_open: bool | Literal["loopback"] = False,
    max_body_bytes: int = MAX_BODY_BYTES,
    health_check_period_s: float = 5.0,
    drain_s: float = 120.0,
    stats_period_s: float = 1.0,
) -> serve.Application:
    """What serve.run() takes. `arguments` are more of `zinc-rt serve`, for each replica.

    A replica's server starts threads of its own, so `num_cpus` is only what Ray counts. `may_be_open`: a server without
    keys is served, too; "loopback": to those alone who call it by a loopback name. `drain_s` is how long answers under
    way may take when a replica is to end.
    """
    arguments = [*([str(model)] if model is not None else []), *map(str, arguments)]
    refuse_own_options(arguments)
    ends = {"graceful_shutdown_timeout_s": drain_s, "graceful_shutdown_wait_loop_s": 0.5}
    routes = RequestRouterConfig(
        request_router_class=PrefixRouter,
        request_routing_stats_period_s=stats_period_s,
    )
    held = serve.deployment(
        Replica,
        name="Replica",
        num_replicas=replicas,
        ray_actor_options={"num_cpus": num_cpus, "num_gpus": num_gpus},
        max_ongoing_requests=MOST_AT_ONCE,
        health_check_period_s=health_check_period_s,
        request_router_config=routes,
        **ends,
    ).bind(arguments, may_be_open)
    return serve.deployment(
        Ingress,
        name="Ingress",
        num_replicas=ingresses,
        ray_actor_options={"num_cpus": 0.1},
        max_ongoing_requests=MOST_AT_ONCE,
        **ends,
    ).bind(held, max_body_bytes)


def build(options: dict) -> serve.Application:
    """For `serve run zinc_rt.ray:build` and configuration files: the options are those of app()."""
    return app(**options)
