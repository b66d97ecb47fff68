"""Streams for asyncio: an event loop waits for a stream's file descriptor, so that a stream costs no thread."""

import asyncio


async def _readable(stream) -> bool:
    """Waits until the stream has an event. False: this loop or system cannot wait for descriptors."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    fd = stream.fileno()
    if fd < 0:  # the system has no descriptors left
        return False
    try:
        loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
    except NotImplementedError:  # Windows' default loop and some others cannot wait for a descriptor
        return False
    try:
        await ready
    finally:
        loop.remove_reader(fd)
    return True


async def _next(stream):
    is_there, event = stream._poll()
    while not is_there:
        if await _readable(stream):
            is_there, event = stream._poll()
        else:
            # A thread of the loop's pool waits in its place, at most a second, so that it is free soon after the
            # task is cancelled.
            is_there, event = await asyncio.to_thread(stream._poll, 1000.0)
    if event is None:
        raise StopAsyncIteration
    return event


async def _enter(stream):
    return stream


async def _exit(stream, *_):
    stream.cancel()


async def astream(session, *args, **kwargs):
    """Generates as an async iterator of StreamEvent, with the arguments of generate(). Leaving the loop cancels."""
    with session.stream(*args, **kwargs) as stream:
        async for event in stream:
            yield event


async def agenerate(session, *args, **kwargs):
    """Generates and returns the whole Completion. Cancelling the task cancels the request."""
    with session.stream(*args, **kwargs) as stream:
        async for _ in stream:
            pass
        return stream.completion


def install(stream_class, session_class) -> None:
    """Gives the native classes their asyncio side."""
    stream_class.__aiter__ = lambda stream: stream
    stream_class.__anext__ = _next
    stream_class.__aenter__ = _enter
    stream_class.__aexit__ = _exit
    session_class.astream = astream
    session_class.agenerate = agenerate
