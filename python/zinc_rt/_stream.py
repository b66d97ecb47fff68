"""Session.astream: the stream for asyncio."""

import asyncio


async def astream(self, *args, **kwargs):
    """Generates as an async iterator of StreamEvent, with the arguments of generate(). Leaving the loop cancels."""
    stream = await asyncio.to_thread(self.stream, *args, **kwargs)
    try:
        while (event := await asyncio.to_thread(next, stream, None)) is not None:
            yield event
    finally:
        stream.cancel()
