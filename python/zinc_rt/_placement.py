"""Which of several replicas of a model a request goes to: the engine's own rule (cpp/sched/placement.h)."""

from typing import NamedTuple

from ._core import choose_replica, placement_key

__all__ = ["PAGE_TOKENS", "ReplicaLoad", "choose_replica", "placement_key"]

PAGE_TOKENS = 16


class ReplicaLoad(NamedTuple):
    """What a replica reports when a request comes. Both are in tokens of prefill."""

    cached_tokens: int = 0  # tokens of the request's prompt that its cache holds
    backlog_tokens: int = 0  # tokens of its requests that it has not computed yet
