"""What a router knows about its replicas: the load that each reported last, and the requests that it sent to each."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping

from .._placement import PAGE_TOKENS, ReplicaLoad, choose_replica
from .call import Prompt

# Until a replica reports how many pages it has, it is assumed to have this many.
PAGES_UNTIL_TOLD = 4096
# This many requests are remembered per replica, which is more than Serve lets a replica have at once.
MOST_SENT = 1 << 14
# A replica that must not be chosen (it is gone or already ranked) gets this backlog. No real backlog is as large.
NO_REPLICA = ReplicaLoad(backlog_tokens=1 << 62)


class ReplicaView:
    """What the router knows about one replica: which pages of prompts its cache should hold, and its backlog.

    The pages come from the requests that the router sent there. When they outnumber the pages of the replica's cache,
    the router forgets the oldest.
    """

    def __init__(self) -> None:
        self.pages: OrderedDict[bytes, None] = OrderedDict()
        # Key: the request's id. Value: when it was sent, and how many of its tokens were not cached.
        self.sent: dict[str, tuple[float, int]] = {}
        self.over: deque[str] = deque()  # requests that ended and are still in `sent`
        # The replica's last report: its number, when it came, and its backlog. Requests that were sent before the
        # report and have ended since are taken off that backlog.
        self.told_number, self.told_at, self.told_backlog = 0, 0.0, 0

    def hear(self, stats: Mapping, now: float) -> None:
        number = stats.get("number", 0)
        self.settle()
        if number != self.told_number:
            self.told_number, self.told_at = number, now
            self.told_backlog = _number(stats, "backlog_tokens", 0)

    def settle(self) -> None:
        while self.over:
            when, n = self.sent.pop(self.over.popleft(), (self.told_at + 1, 0))
            if when < self.told_at:
                self.told_backlog = max(0, self.told_backlog - n)
        # completed() is never called for a request that Serve did not send after all, so the oldest are dropped.
        while len(self.sent) > MOST_SENT:
            del self.sent[next(iter(self.sent))]

    @property
    def backlog_tokens(self) -> int:
        return self.told_backlog + sum(n for when, n in self.sent.values() if when >= self.told_at)

    def cached_tokens(self, prompt: Prompt) -> int:
        n = 0
        while n < len(prompt.pages) and prompt.pages[n] in self.pages:
            n += 1
        return n * PAGE_TOKENS

    def keep(self, prompt: Prompt, most: int) -> None:
        # The last page is inserted first, so that a prompt's first pages are dropped last.
        for page in reversed(prompt.pages):
            self.pages[page] = None
            self.pages.move_to_end(page)
        while len(self.pages) > most:
            self.pages.popitem(last=False)


class ReplicaViews:
    """All replicas. Each reports its backlog from time to time; between reports the router counts by itself.

    REQUIRES: calls come from one thread, but for completed().
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.views: dict[Hashable, ReplicaView] = {}
        # A replica keeps its number, and a new one gets the lowest free number. So most keys still map to the same
        # replica.
        self.numbers: list[Hashable | None] = []

    def update(self, ids: Iterable[Hashable]) -> None:
        """Sets the list of replicas. Forgets those that are gone, because a new process starts with an empty cache."""
        ids = list(ids)
        for gone in self.views.keys() - set(ids):
            del self.views[gone]
            self.numbers[self.numbers.index(gone)] = None
        for new in sorted(set(ids) - self.views.keys(), key=str):
            self.views[new] = ReplicaView()
            if None in self.numbers:
                self.numbers[self.numbers.index(None)] = new
            else:
                self.numbers.append(new)

    def ranked(self, stats: Mapping[Hashable, Mapping], prompt: Prompt) -> list[Hashable]:
        """The replicas of `stats`, the best first. REQUIRES: update() was called with them."""
        loads = [NO_REPLICA if each not in stats else self.load(each, stats[each], prompt) for each in self.numbers]
        out = []
        while len(out) < len(stats):
            i = choose_replica(loads, prompt.key)
            out.append(self.numbers[i])
            loads[i] = NO_REPLICA
        return out

    def load(self, each: Hashable, stats: Mapping, prompt: Prompt) -> ReplicaLoad:
        view = self.views[each]
        view.hear(stats, self.now())
        return ReplicaLoad(view.cached_tokens(prompt), view.backlog_tokens)

    def send(self, each: Hashable, request: str, stats: Mapping, prompt: Prompt) -> None:
        """Notes that the request goes to this replica and to no other. A second call with it changes nothing."""
        view = self.views.get(each)
        if view is None or request in view.sent:
            return
        for other in self.views.values():
            other.sent.pop(request, None)
        view.sent[request] = (self.now(), max(0, prompt.n_tokens - view.cached_tokens(prompt)))
        view.keep(prompt, _number(stats, "pages", PAGES_UNTIL_TOLD))

    def completed(self, each: Hashable, request: str) -> None:
        view = self.views.get(each)
        if view is not None:
            view.over.append(request)


def _number(stats: Mapping, name: str, otherwise: int) -> int:
    """A number from Replica.record_routing_stats(); `otherwise` until the replica has reported for the first time."""
    return stats.get("load", {}).get(name, otherwise)
