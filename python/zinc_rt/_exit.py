"""What happens to engines and waiting threads when the interpreter ends."""

import atexit
import functools
import os
import weakref

from . import _core

_engines = weakref.WeakSet()


def _end():
    _core._end_calls()
    for engine in list(_engines):
        engine.close()


def install(engine_class) -> None:
    """When the interpreter ends, closes engines that are still open and keeps daemon threads that wait for them out."""
    make = engine_class.__init__

    @functools.wraps(make)
    def __init__(self, *args, **kwargs):
        make(self, *args, **kwargs)
        _engines.add(self)

    engine_class.__init__ = __init__
    atexit.register(_end)
    os.register_at_fork(after_in_child=_engines.clear)  # a forked child has none of the engines' threads
