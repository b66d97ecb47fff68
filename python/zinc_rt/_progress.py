"""A progress bar for a terminal or a notebook."""

import functools
import os
import sys
import time


def wants_bar(progress: bool | None) -> bool:
    """None: where somebody looks, that is on a terminal or in a notebook."""
    if progress is not None:
        return progress
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """How many of n are done, on one line of stderr. Any thread, one at a time."""

    WIDTH = 30

    def __init__(self, n: int, what: str):
        self.n, self.what, self.begin = n, what, time.monotonic()
        self.show(0, 0)

    def show(self, done: int, tokens: int) -> None:
        rate = tokens / max(time.monotonic() - self.begin, 1e-9)
        _line(self.what, done, self.n, f"{done}/{self.n}, {rate:.0f} tokens/s")

    def end(self) -> None:
        print(file=sys.stderr, flush=True)


def _line(what: str, done: int, n: int, text: str) -> None:
    full = Progress.WIDTH * done // max(n, 1)
    bar = "#" * full + "." * (Progress.WIDTH - full)
    print(f"\r{what} [{bar}] {text}", end="", file=sys.stderr, flush=True)


class Loading:
    """How much of a model is loaded. Loads shorter than a blink show nothing, unless the bar is asked for."""

    BLINK_S, PAUSE_S = 0.5, 0.1

    def __init__(self, path, is_asked_for: bool):
        self.name, self.begin = os.path.basename(os.fspath(path)), time.monotonic()
        self.is_shown, self.shows_all, self.next_s = False, is_asked_for, 0.0

    def show(self, done: int, total: int) -> None:
        passed = time.monotonic() - self.begin
        if (passed < self.BLINK_S and not self.shows_all) or (passed < self.next_s and done < total):
            return
        self.is_shown, self.next_s = True, passed + self.PAUSE_S
        _line(f"loading {self.name}", done, total, f"{done / 1e6:.0f}/{total / 1e6:.0f} MB, {passed:.1f} s")

    def end(self) -> None:
        if self.is_shown:
            print(file=sys.stderr, flush=True)


def with_loading_bar(call):
    """The same call, which takes the path of a model first, with a bar; progress=None: where somebody looks."""

    @functools.wraps(call)
    def load(self, *args, progress: bool | None = None, on_progress=None, **options):
        if not wants_bar(progress):
            return call(self, *args, on_progress=on_progress, **options)
        bar = Loading(args[0] if args else options.get("model") or options["path"], bool(progress))

        def both(done: int, total: int) -> None:
            bar.show(done, total)
            if on_progress is not None:
                on_progress(done, total)

        try:
            return call(self, *args, on_progress=both, **options)
        finally:
            bar.end()

    return load
