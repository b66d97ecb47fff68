"""Which of several places that hold the same model a request goes to: the rule of docs/fleets.md, and its hash.

choose_place() and placement_key() give what the engine's functions of these names give (cpp/sched/placement.h).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

PAGE_TOKENS = 16
PLACEMENT_TOKENS = 4 * PAGE_TOKENS  # the tokens of a prompt that its key looks at
_MASK = (1 << 64) - 1


class PlaceLoad(NamedTuple):
    """What a place says about itself when a request comes. Both are in tokens of prefill."""

    cached_tokens: int = 0  # of the request's prompt: what it holds of it
    backlog_tokens: int = 0  # of all requests there: what it has not computed yet


def choose_place(places: Sequence[PlaceLoad], key: int) -> int:
    """The index of the place that has computed the prompt soonest.

    That is the one with the longest cached prefix, unless its backlog is more than another's and what the longer prefix
    saves. Of places that are as good the one with the longer prefix is taken, then the first of a rendezvous of the key
    with each place, so that a place more or less moves few keys.
    """

    def rank(i: int) -> tuple[int, int, int]:
        cached, backlog = places[i]
        return backlog - cached, -cached, siphash(struct.pack("<QQ", key, i))

    return min(range(len(places)), key=rank)


def placement_key(tenant: bytes, cache_salt: bytes, prompt: bytes) -> int:
    """What requests have in common that should share a place before any place has computed something of them.

    `prompt` has four bytes, little endian, for each token. It is the same number in every process.
    """
    # Each part has its length before it, so that no two lists of parts give the same bytes.
    parts = (tenant, cache_salt, prompt[: 4 * PLACEMENT_TOKENS])
    return siphash(b"".join(struct.pack("<Q", len(part)) + part for part in parts))


def siphash(data: bytes, k0: int = 0, k1: int = 0) -> int:
    """SipHash-2-4 (Aumasson and Bernstein)."""
    v = [0x736F6D6570736575 ^ k0, 0x646F72616E646F6D ^ k1, 0x6C7967656E657261 ^ k0, 0x7465646279746573 ^ k1]
    tail = len(data) % 8
    last = data[len(data) - tail :] + bytes(7 - tail) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", data[: len(data) - tail] + last):
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[int], n: int) -> None:
    a, b, c, d = v
    for _ in range(n):
        a = (a + b) & _MASK
        b = _rotated(b, 13) ^ a
        a = _rotated(a, 32)
        c = (c + d) & _MASK
        d = _rotated(d, 16) ^ c
        a = (a + d) & _MASK
        d = _rotated(d, 21) ^ a
        c = (c + b) & _MASK
        b = _rotated(b, 17) ^ c
        c = _rotated(c, 32)
    v[:] = a, b, c, d


def _rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & _MASK
