"""What a router knows of its places: the load that each last told, and what it has sent there since and before."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping

from .._placement import PAGE_TOKENS, PlaceLoad, choose_place
from .call import Prompt

# Pages that a place is believed to hold before it has said how many it has.
PAGES_UNTIL_TOLD = 4096
# Requests of a place that are remembered: more than Serve lets one have at once.
MOST_SENT = 1 << 14
# More than any backlog: a place that is not there, or that stands in the list already.
NOWHERE = PlaceLoad(backlog_tokens=1 << 62)


class Place:
    """What the router knows of one replica: the prompts' pages that its cache should hold, and its backlog.

    The pages are those of the requests that the router sent there. The oldest are forgotten when there are more than
    the replica's cache has.
    """

    def __init__(self) -> None:
        self.pages: OrderedDict[bytes, None] = OrderedDict()
        self.sent: dict[str, tuple[float, int]] = {}  # by request: when it was sent, tokens that were not cached
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
        # Nobody says of a request that was never sent that it ended, so the oldest are dropped.
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
        # From the end, so that a prompt's first pages are forgotten last.
        for page in reversed(prompt.pages):
            self.pages[page] = None
            self.pages.move_to_end(page)
        while len(self.pages) > most:
            self.pages.popitem(last=False)


class Places:
    """All replicas. Each reports its backlog from time to time; between reports the router counts by itself.

    REQUIRES: calls come from one thread, but for completed().
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.places: dict[Hashable, Place] = {}
        # A place keeps its number, and one that comes anew gets the lowest free one: keys stay where they are.
        self.numbers: list[Hashable | None] = []

    def update(self, ids: Iterable[Hashable]) -> None:
        """These are the places now. What is known of others is forgotten, since a new process has an empty cache."""
        ids = list(ids)
        for gone in self.places.keys() - set(ids):
            del self.places[gone]
            self.numbers[self.numbers.index(gone)] = None
        for new in sorted(set(ids) - self.places.keys(), key=str):
            self.places[new] = Place()
            if None in self.numbers:
                self.numbers[self.numbers.index(None)] = new
            else:
                self.numbers.append(new)

    def ranked(self, stats: Mapping[Hashable, Mapping], prompt: Prompt) -> list[Hashable]:
        """The places of `stats`, the best first. REQUIRES: update() was told of them."""
        loads = [NOWHERE if each not in stats else self.load(each, stats[each], prompt) for each in self.numbers]
        out = []
        while len(out) < len(stats):
            i = choose_place(loads, prompt.key)
            out.append(self.numbers[i])
            loads[i] = NOWHERE
        return out

    def load(self, each: Hashable, stats: Mapping, prompt: Prompt) -> PlaceLoad:
        place = self.places[each]
        place.hear(stats, self.now())
        return PlaceLoad(place.cached_tokens(prompt), place.backlog_tokens)

    def send(self, each: Hashable, request: str, stats: Mapping, prompt: Prompt) -> None:
        """The request goes there, and nowhere else. To say it twice changes nothing."""
        place = self.places.get(each)
        if place is None or request in place.sent:
            return
        for other in self.places.values():
            other.sent.pop(request, None)
        place.sent[request] = (self.now(), max(0, prompt.n_tokens - place.cached_tokens(prompt)))
        place.keep(prompt, _number(stats, "pages", PAGES_UNTIL_TOLD))

    def completed(self, each: Hashable, request: str) -> None:
        place = self.places.get(each)
        if place is not None:
            place.over.append(request)


def _number(stats: Mapping, name: str, otherwise: int) -> int:
    """Of what Replica.record_routing_stats() gave; a replica that has not been asked yet has given nothing."""
    return stats.get("load", {}).get(name, otherwise)
