"""A progress bar for a terminal or a notebook."""

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
        full = self.WIDTH * done // max(self.n, 1)
        rate = tokens / max(time.monotonic() - self.begin, 1e-9)
        bar = "#" * full + "." * (self.WIDTH - full)
        print(f"\r{self.what} [{bar}] {done}/{self.n}, {rate:.0f} tokens/s", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print(file=sys.stderr, flush=True)
