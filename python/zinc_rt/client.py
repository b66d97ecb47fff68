"""A client of `zinc-rt serve` for asyncio. It needs only the standard library.

>>> async with zinc_rt.AsyncClient("http://127.0.0.1:8080") as client:
...     answer = await client.chat([{"role": "user", "content": "hello"}], max_tokens=20)
...     async with client.stream_chat([{"role": "user", "content": "hello"}]) as stream:
...         async for piece in stream:
...             print(piece.text, end="")

Parameters are the server's fields (docs/server.md). A field that is not given has the server's default. Errors are
those of zinc_rt.errors, in the server's words.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from . import errors
from ._http import MAX_HEAD, Connection
from ._signature import checks_arguments
from ._types import TokenId

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._fields import ServerFields


@dataclass(frozen=True)
class ApiUsage:
    """What the server charged for a request, all choices together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int  # how many of prompt_tokens came from the prefix cache


@dataclass(frozen=True)
class ApiChoice:
    """One of the n answers to a request."""

    text: str
    finish_reason: str  # stop, length, deadline, client_too_slow, cancelled
    reasoning: str = ""  # the text between <think> and </think>
    token_ids: list[int] = field(default_factory=list)  # with return_token_ids
    logprobs: dict[str, Any] | None = None  # in the form of OpenAI's API
    logits_hashes: list[int] = field(default_factory=list)  # with return_logits_hash, as in Completion


@dataclass(frozen=True)
class ApiAnswer:
    """A whole answer."""

    id: str  # also the id of the request's row in the ledger
    model: str
    choices: list[ApiChoice]
    usage: ApiUsage
    timings: dict[str, Any] | None = None  # with timings

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text


@dataclass(frozen=True)
class ApiPiece:
    """What one event of a stream adds to a choice."""

    index: int
    text: str
    reasoning: str = ""
    finish_reason: str | None = None  # in the choice's last piece
    token_ids: list[int] = field(default_factory=list)
    logprobs: dict[str, Any] | None = None
    logits_hashes: list[int] = field(default_factory=list)


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events, each of one line."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


def _raise_for(status: int, headers: dict[str, str], body: bytes) -> NoReturn:
    try:
        said = json.loads(body)["error"]
        words = said["message"]
    except (ValueError, KeyError, TypeError):
        said, words = {}, body[:300].decode(errors="replace")
    message = f"{words} (status {status})"
    retry_after = headers.get("retry-after", "")
    error: errors.ZincError
    if status == 429 or (status == 503 and retry_after):
        error = errors.Exhausted(message, float(retry_after or 0))
    elif status == 404:
        error = errors.NotFound(message)
    elif status < 500:
        error = errors.InvalidArgument(message)
    else:
        error = errors.Unavailable(message) if status in (501, 503) else errors.Internal(message)
    error.reason, error.field = said.get("code") or "", said.get("param") or ""
    raise error


def _usage(usage: dict[str, Any]) -> ApiUsage:
    details = usage.get("prompt_tokens_details") or {}
    return ApiUsage(
        usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"], details.get("cached_tokens", 0)
    )


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    """The fields that whole answers and pieces share."""
    said = choice.get("message") or choice.get("delta") or {}
    return {
        "text": choice.get("text") or said.get("content") or "",
        "reasoning": said.get("reasoning_content") or "",
        "finish_reason": choice.get("finish_reason"),
        "token_ids": choice.get("token_ids") or [],
        "logprobs": choice.get("logprobs"),
        "logits_hashes": [int(digits, 16) for digits in choice.get("logits_hash") or ()],
    }


def _prompt(prompt: str | Sequence[TokenId]) -> str | list[int]:
    return prompt if isinstance(prompt, str) else list(prompt)


class ApiStream:
    """An answer as it is made: an async iterator of ApiPiece.

    Leaving `async with` before the end hangs up, which cancels the request.
    """

    def __init__(self, client: AsyncClient, path: str, body: dict[str, Any]):
        self._client, self._path, self._body = client, path, body
        self._connection: Connection | None = None
        self._pieces: AsyncIterator[ApiPiece] | None = None
        self.id: str | None = None  # set when the first piece has arrived
        self.usage: ApiUsage | None = None  # set at the end of the stream
        self.timings: dict[str, Any] | None = None

    async def __aenter__(self) -> ApiStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Hangs up; nothing after the end."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __aiter__(self) -> AsyncIterator[ApiPiece]:
        return self

    async def __anext__(self) -> ApiPiece:
        if self._pieces is None:
            self._pieces = self._read()
        return await self._pieces.__anext__()

    async def _read(self) -> AsyncIterator[ApiPiece]:
        body = {**self._body, "stream": True, "stream_options": {"include_usage": True}}
        connection = self._connection = await self._client._send("POST", self._path, body)
        is_done = False
        try:
            if connection.status != 200:
                _raise_for(connection.status, connection.headers, await connection.body())
            async for data in _events(connection.pieces()):
                if data == b"[DONE]":
                    is_done = True
                    continue
                event = json.loads(data)
                if error := event.get("error"):
                    failed = errors.Internal(error.get("message", "the answer failed"))
                    failed.reason = error.get("code") or ""
                    raise failed
                self.id = event.get("id", self.id)
                if event.get("usage"):
                    self.usage, self.timings = _usage(event["usage"]), event.get("timings")
                for choice in event.get("choices", ()):
                    yield ApiPiece(index=choice["index"], **_choice(choice))
            if not is_done:
                connection.cut_off("the stream ended before the answer did")
        finally:
            if self._connection is not None:
                self._connection = None
                self._client._take_back(connection)


class AsyncClient:
    """Connections to one server, for one event loop; any number of requests at once.

    url: http:// or https://, with or without /v1 behind it. timeout: seconds in which not a byte came; streams have
    heartbeats, so it bounds the wait for whole answers. ssl_context: for https, where the default will not do.
    """

    @checks_arguments
    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        timeout: float = 600.0,
        ssl_context: ssl.SSLContext | None = None,
    ):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise errors.InvalidArgument(f"[url] {url!r}: such as http://127.0.0.1:8080 wanted")
        is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if is_tls else 80)
        self._base = parts.path.rstrip("/").removesuffix("/v1")
        self._ssl = (ssl_context or ssl.create_default_context()) if is_tls else None
        self._head = f"Host: {parts.netloc}\r\nContent-Type: application/json\r\n"
        if api_key is not None:
            if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
                raise errors.InvalidArgument("[url] the API key has characters that no header may have")
            self._head += f"Authorization: Bearer {api_key}\r\n"
        self._timeout = timeout
        self._idle: list[Connection] = []

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @checks_arguments
    async def close(self) -> None:
        """Closes the connections that no request uses."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        for connection in idle:
            try:
                await connection.writer.wait_closed()
            except OSError:
                pass  # the server closed the connection first

    @checks_arguments
    async def chat(self, messages: Sequence[dict[str, Any]], **parameters: Unpack[ServerFields]) -> ApiAnswer:
        """Answers a conversation: /v1/chat/completions. Cancelling the task hangs up, which cancels the request."""
        return self._answer(
            await self._call("POST", "/v1/chat/completions", {"messages": list(messages), **parameters})
        )

    @checks_arguments
    async def generate(self, prompt: str | Sequence[TokenId], **parameters: Unpack[ServerFields]) -> ApiAnswer:
        """Goes on with a text, or with token ids: /v1/completions."""
        return self._answer(await self._call("POST", "/v1/completions", {"prompt": _prompt(prompt), **parameters}))

    @checks_arguments
    def stream_chat(self, messages: Sequence[dict[str, Any]], **parameters: Unpack[ServerFields]) -> ApiStream:
        """chat() in pieces."""
        return ApiStream(self, "/v1/chat/completions", {"messages": list(messages), **parameters})

    @checks_arguments
    def stream_generate(self, prompt: str | Sequence[TokenId], **parameters: Unpack[ServerFields]) -> ApiStream:
        """generate() in pieces."""
        return ApiStream(self, "/v1/completions", {"prompt": _prompt(prompt), **parameters})

    @checks_arguments
    async def tokenize(self, text: str, **parameters: Any) -> list[int]:
        return (await self._call("POST", "/tokenize", {"prompt": text, **parameters}))["tokens"]

    @checks_arguments
    async def detokenize(self, token_ids: Sequence[TokenId], **parameters: Any) -> str:
        return (await self._call("POST", "/detokenize", {"tokens": list(token_ids), **parameters}))["prompt"]

    @checks_arguments
    async def apply_template(self, messages: Sequence[dict[str, Any]], **parameters: Any) -> str:
        """The prompt that the model sees for a conversation."""
        return (await self._call("POST", "/apply-template", {"messages": list(messages), **parameters}))["prompt"]

    @checks_arguments
    async def models(self) -> list[dict[str, Any]]:
        """What is served."""
        return (await self._call("GET", "/v1/models"))["data"]

    @checks_arguments
    async def usage(self, tenant: str = "me") -> dict[str, Any]:
        """What a tenant used; of others than the key's own with an admin's key."""
        return await self._call("GET", f"/v1/tenants/{urllib.parse.quote(tenant, safe='')}/usage")

    @staticmethod
    def _answer(body: dict[str, Any]) -> ApiAnswer:
        choices = [ApiChoice(**_choice(choice)) for choice in body["choices"]]
        return ApiAnswer(body["id"], body["model"], choices, _usage(body["usage"]), body.get("timings"))

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = await self._send(method, path, body)
        try:
            answer = await connection.body()
        finally:
            self._take_back(connection)
        if connection.status != 200:
            _raise_for(connection.status, connection.headers, answer)
        return json.loads(answer)

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Connection:
        data = b"" if body is None else json.dumps(body).encode()
        length = f"Content-Length: {len(data)}\r\n" if body is not None else ""
        message = f"{method} {self._base}{path} HTTP/1.1\r\n{self._head}{length}\r\n".encode() + data
        connection = await self._connect()
        try:
            await connection.send(message)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection
            connection.close()
        place = f"{self._host}:{self._port}"
        opening = asyncio.open_connection(self._host, self._port, ssl=self._ssl, limit=MAX_HEAD)
        try:
            reader, writer = await asyncio.wait_for(opening, self._timeout)
        except asyncio.TimeoutError:
            raise errors.Unavailable(f"[http] {place}: no connection in {self._timeout:g} s") from None
        except OSError as error:
            raise errors.Unavailable(f"[http] {place}: {error}") from error
        return Connection(reader, writer, self._timeout, place)

    def _take_back(self, connection: Connection) -> None:
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()
