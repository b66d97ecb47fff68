"""HTTP/1.1 for the client: one connection, with one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NoReturn

from . import errors

MAX_HEAD = 1 << 20  # the most bytes of a head, or of a line of a stream


class Connection:
    """One connection, with one request at a time. Each wait for bytes is bounded by `timeout`, unless that is None."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float | None, place: str):
        self.reader, self.writer, self.timeout, self.place = reader, writer, timeout, place
        self.status, self.fields, self.headers, self.is_whole = 0, [], {}, False

    @property
    def is_reusable(self) -> bool:
        return self.is_whole and self.headers.get("connection", "").lower() != "close" and self.is_quiet

    @property
    def is_quiet(self) -> bool:
        return not (self.writer.is_closing() or self.reader.at_eof())

    def close(self) -> None:
        self.writer.close()

    def cut_off(self, why: object) -> NoReturn:
        raise errors.Unavailable(f"[http] {self.place}: the answer is cut off: {why}") from None

    async def wait(self, read):
        try:
            return await asyncio.wait_for(read, self.timeout)
        except asyncio.TimeoutError:
            raise errors.Unavailable(f"[http] {self.place}: nothing came for {self.timeout:g} s") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            self.cut_off(error)

    async def send(self, message: bytes) -> None:
        """Sends a request and reads the answer's head."""
        self.is_whole = False
        self.writer.write(message)
        head = (await self.wait(self.reader.readuntil(b"\r\n\r\n"))).decode("latin-1").split("\r\n")
        version_status = head[0].split(" ")
        if not version_status[0].startswith("HTTP/1.") or not version_status[1:2] or not version_status[1].isdigit():
            self.cut_off(f"{head[0][:80]!r} is no HTTP")
        self.status = int(version_status[1])
        lines = (line.partition(":") for line in head[1:] if line)
        self.fields = [(name.strip().lower(), value.strip()) for name, _, value in lines]
        self.headers = dict(self.fields)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := await self._chunk_size():
                yield (await self.wait(self.reader.readexactly(size + 2)))[:-2]
            await self.wait(self.reader.readuntil(b"\r\n"))
        elif "content-length" in self.headers:
            yield await self.wait(self.reader.readexactly(int(self.headers["content-length"])))
        else:
            while piece := await self.wait(self.reader.read(1 << 16)):
                yield piece
        self.is_whole = True

    async def _chunk_size(self) -> int:
        line = await self.wait(self.reader.readuntil(b"\r\n"))
        try:
            return int(line.split(b";")[0], 16)
        except ValueError:
            self.cut_off(f"{line[:80]!r} is no chunk size")

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])
