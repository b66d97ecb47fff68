"""Which of several places that hold the same model a request goes to: the engine's own rule (cpp/sched/placement.h)."""

from typing import NamedTuple

from ._core import choose_place, placement_key

__all__ = ["PAGE_TOKENS", "PlaceLoad", "choose_place", "placement_key"]

PAGE_TOKENS = 16


class PlaceLoad(NamedTuple):
    """What a place says about itself when a request comes. Both are in tokens of prefill."""

    cached_tokens: int = 0  # of the request's prompt: what it holds of it
    backlog_tokens: int = 0  # of all requests there: what it has not computed yet
