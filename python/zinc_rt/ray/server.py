"""`zinc-rt serve` as a process of a replica, and the bytes that go to it and come from it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import AsyncIterator, Callable, Sequence

from .. import errors
from .._http import MAX_HEAD, Connection
from .call import Call

HOST = "127.0.0.1"
# Hop-by-hop headers, which a proxy must not forward (RFC 9110, 7.6.1), and Content-Length, which is computed again.
HOP_BY_HOP = {
    b"connection",
    b"content-length",
    b"expect",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# A replica sets these options of `zinc-rt serve` itself, so users may not set them.
OWN_OPTIONS = (
    "--host",
    "--port",
    "--metrics-listen",
    "--state",
    "--tls-cert",
    "--tls-key",
    "--allow-anonymous",
    "--ready-fd",
)
# Asks the kernel for SIGTERM when the thread that started it ends (PR_SET_PDEATHSIG), and becomes the program. Doing it
# between fork and exec (preexec_fn) would make Python use fork(), and the fork handlers of Ray's libraries break the
# child.
_LAUNCHER = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 15)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def program() -> list[str]:
    """This package's own program; ZRT_PROGRAM names another."""
    return shlex.split(os.environ.get("ZRT_PROGRAM", "")) or [sys.executable, "-m", "zinc_rt"]


def refuse_own_options(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if argument.split("=")[0] in OWN_OPTIONS:
            raise errors.InvalidArgument(f"[ray] {argument.split('=')[0]}: a replica's server is given it already")


class Server:
    """A server on loopback, on free ports, without a state file. It ends with this process, however that ends."""

    def __init__(self, arguments: Sequence[str], on_end: Callable[[int], None], any_host: bool = False):
        """Returns once requests are taken. `on_end` hears, on another thread, of an end that stop() did not ask for.

        `any_host`: a server without keys answers to Host headers with other names than this machine's loopback ones.
        """
        refuse_own_options(arguments)
        self.arguments, self.on_end = list(arguments), on_end
        if any_host:
            self.arguments.append("--allow-anonymous")
        self.port = self.metrics_port = 0
        self.process: subprocess.Popen | None = None
        self.is_stopping = False
        self._why = "it says why above"
        self._started = threading.Event()
        # The kernel ends the child together with the thread that started it, so that thread must live as long as the
        # child.
        self.thread = threading.Thread(target=self._run, name="zinc-rt", daemon=True)
        self.thread.start()
        self._started.wait()
        if not self.metrics_port:
            raise errors.Unavailable(f"[ray] zinc-rt serve did not start: {self._why}")

    def _run(self) -> None:
        command = [sys.executable, "-I", "-c", _LAUNCHER, str(os.getpid())]
        command += [*program(), "serve", *self.arguments, "--host", HOST, "--port", "0", "--state", "none"]
        command += ["--metrics-listen", f"{HOST}:0"]
        try:
            code = self._start(command).wait()
        except OSError as error:
            self._why = str(error)
            code = -1
        has_served = self._started.is_set()
        self._started.set()
        if has_served and not self.is_stopping:
            self.on_end(code)

    def _start(self, command: list[str]) -> subprocess.Popen:
        """The process, whose ports are known unless it ends; _why says what else is wrong."""
        reader, writer = os.pipe()
        with open(reader) as ready:
            try:
                command += ["--ready-fd", str(writer)]
                process = self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[writer])
            finally:
                os.close(writer)
            addresses = [urllib.parse.urlsplit(each) for each in ready.readline().split()]
        if addresses and addresses[0].scheme == "https":
            self._why = "TLS is for what stands before Ray Serve, and not within a replica"
            process.terminate()
        elif addresses:
            self.port, self.metrics_port = (each.port for each in addresses)
            self._started.set()
        return process

    def stop(self) -> None:
        """Answers under way end first, for as long as the server's drain_timeout_s says."""
        self.is_stopping = True
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.thread.join()

    async def pass_on(self, call: Call) -> AsyncIterator[tuple[int, list[tuple[str, str]]] | bytes]:
        """Status and headers of the answer, then its body as it comes. To leave it closes the server's connection."""
        async with self._connection(self.port) as connection:
            await connection.send(_message(call))
            is_ours = HOP_BY_HOP - {b"content-length"}
            yield connection.status, [each for each in connection.fields if each[0].encode("latin-1") not in is_ours]
            if call.method != "HEAD" and connection.status not in (204, 304):
                async for piece in connection.pieces():
                    yield piece

    async def ask(self, path: str) -> tuple[int, bytes]:
        """An answer of the port for probes and metrics."""
        async with self._connection(self.metrics_port) as connection:
            await connection.send(_message(Call("GET", path, [(b"host", HOST.encode())], b"")))
            return connection.status, await connection.body()

    async def check(self) -> None:
        """Raises unless the server is ready: while a step hangs, the device fails, or the ledger cannot be written."""
        status, body = await self.ask("/readyz")
        if status != 200:
            raise errors.Unavailable(f"[ray] /readyz: {status} {body.decode(errors='replace')[:500]}")

    async def load(self) -> dict:
        status, body = await self.ask("/load")
        if status != 200:
            raise errors.Unavailable(f"[ray] /load: {status}")
        return json.loads(body)

    def wants_keys(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == 401

    @contextlib.asynccontextmanager
    async def _connection(self, port: int) -> AsyncIterator[Connection]:
        try:
            reader, writer = await asyncio.open_connection(HOST, port, limit=MAX_HEAD)
        except OSError as error:
            raise errors.Unavailable(f"[ray] the replica's server is gone: {error}") from None
        try:
            # No timeout here: the server limits how long a request takes.
            yield Connection(reader, writer, None, f"{HOST}:{port}")
        finally:
            writer.close()


def _message(call: Call) -> bytes:
    head = [f"{call.method} {call.target} HTTP/1.1".encode("latin-1")]
    head += [name + b": " + value for name, value in call.headers if name.lower() not in HOP_BY_HOP]
    if call.body or call.method in ("POST", "PUT", "PATCH"):
        head.append(b"content-length: %d" % len(call.body))
    return b"\r\n".join([*head, b"connection: close", b"", call.body])
