"""What validate() found: plain values. The extension passes all fields by name."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """Two arrays, value by value."""

    name: str  # "embed", "0", ..., "logits"
    layer: int  # -1: the embeddings; n_layers: the logits
    equal: bool  # within the tolerance
    n_values: int
    n_different: int  # values that differ in their bits
    max_abs: float
    mean_abs: float
    histogram: dict[int, int]  # key: power of ten of |a - b|; value: how many of the differing values have it

    def __repr__(self) -> str:
        return f"<{self.name}: {self.n_different} of {self.n_values} values differ, at most by {self.max_abs}>"


@dataclass(frozen=True, slots=True)
class ValidateReport:
    """What validate() found; print it for a table."""

    equal: bool
    sides: tuple[str, str]
    token_ids: list[int]
    tolerance: float
    layers: list[Difference]
    logits: Difference
    n_rows: int
    n_same_top: int  # rows in which both sides have the same most likely token
    _text: str = field(repr=False)
    _json: str = field(repr=False)

    def __repr__(self) -> str:
        return self._text

    def to_json(self) -> dict[str, Any]:
        """What `zinc-rt validate --json` prints."""
        return json.loads(self._json)
