"""Tables for notebooks: what _repr_html_ of cards, plans and ledgers gives."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


def cell(name: str, value: object) -> str:
    """A value as people read it."""
    if isinstance(value, Mapping):
        return "<br>".join(f"{html.escape(str(key))}: {cell(f'{name}.{key}', each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return "<br>".join(cell(name, each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return html.escape(str(value))
    if "bytes" in name and value >= 1e4:
        return f"{value:,} ({value / 1e6:,.1f} MB)"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def table(title: str, rows: Mapping[str, Any]) -> str:
    """A table of names and values."""
    left, right = ('style="text-align:left"', 'style="text-align:right"')
    lines = "".join(
        f"<tr><td {left}>{html.escape(name)}</td><td {right}>{cell(name, value)}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption {left}><b>{html.escape(title)}</b></caption>{lines}</table>"


class Card(dict):
    """A dict that notebooks show as a table."""

    title = ""

    def _repr_html_(self) -> str:
        return table(self.title.format_map(self), self)


class ModelCard(Card):
    title = "Model {name}"


class MemoryPlan(Card):
    title = "Memory of a model on {tier}"

    def _repr_html_(self) -> str:
        regions = {each["name"]: f"{each['heap']}, {cell('bytes', each['bytes'])}" for each in self["regions"]}
        return table(self.title.format_map(self), {**{k: v for k, v in self.items() if k != "regions"}, **regions})


def as_card(call, kind: type[Card]):
    """The call, whose dict notebooks show as a table."""

    def shown(*args, **kwargs) -> Card:
        return kind(call(*args, **kwargs))

    shown.__name__, shown.__doc__ = call.__name__, call.__doc__
    return shown
