"""Timeline: what the steps of an engine did, read from a trace, for a notebook.

>>> with engine.timeline() as timeline:
...     engine.generate(prompts)
>>> timeline          # a picture in a notebook; timeline.plot() draws on axes of matplotlib
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from ._signature import checks_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"PREFILL": "#e69f00", "DECODE": "#0072b2", "preempted": "#d55e00"}


@dataclass(frozen=True)
class Step:
    """One step of the engine, in ms from the trace's beginning."""

    index: int
    begin_ms: float
    duration_ms: float
    n_decode: int  # tokens of decoding requests
    n_prefill: int  # tokens of prompts
    n_waiting: int  # requests without a slot
    pages_used: int


@dataclass(frozen=True)
class SlotSpan:
    """A request in a slot."""

    slot: int
    state: str  # PREFILL or DECODE
    begin_ms: float
    end_ms: float
    tenant: str
    request: int
    n_tokens: int


@dataclass(frozen=True)
class Mark:
    """Something that happened to a request."""

    what: str  # admitted, preempted, finished, rejected
    at_ms: float
    tenant: str
    request: int


@dataclass
class Timeline:
    """Steps, slots and what happened to requests; a notebook shows it as a picture."""

    steps: list[Step] = field(default_factory=list)
    spans: list[SlotSpan] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    n_dropped: int = 0  # older records that newer ones have overwritten

    @classmethod
    @checks_arguments
    def read(cls, path: str | PathLike[str]) -> Timeline:
        """Reads a file that Engine.trace() or `zinc-rt trace` wrote."""
        timeline = cls()
        timeline._read(path)
        return timeline

    def _read(self, path: str | PathLike[str]) -> None:
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        events: list[dict[str, Any]] = trace["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        timed = [e for e in events if "ts" in e]
        start = min((e["ts"] for e in timed), default=0)
        self.n_dropped = trace["otherData"]["dropped_records"]
        for e in timed:
            begin, end, a = (e["ts"] - start) / 1e3, (e["ts"] + e.get("dur", 0) - start) / 1e3, e.get("args", {})
            if e["name"] == "step":
                counts = a["decode"], a["prefill"], a["waiting"], a["pages"]
                self.steps.append(Step(a["index"], begin, end - begin, *counts))
            elif e["ph"] == "X" and e["name"] in ("PREFILL", "DECODE"):
                slot = int(names[e["pid"], e["tid"]].removeprefix("slot "))
                # In the trace, a tenant's thread number is its own number plus one.
                tenant = names.get((2, a["tenant"] + 1), str(a["tenant"]))
                self.spans.append(SlotSpan(slot, e["name"], begin, end, tenant, a["request"], a["tokens"]))
            elif e["ph"] == "i":
                self.marks.append(Mark(e["name"], begin, names[e["pid"], e["tid"]], a["request"]))

    @property
    def duration_ms(self) -> float:
        ends = [s.end_ms for s in self.spans] + [s.begin_ms + s.duration_ms for s in self.steps]
        return max(ends + [m.at_ms for m in self.marks], default=0.0)

    @checks_arguments
    def plot(self, axes: Axes | None = None) -> Axes:
        """Draws the slots over time on axes of matplotlib, a line for each tenant's slots; gives the axes."""
        import matplotlib.pyplot as plt

        axes = (
            plt.subplots(figsize=(9, 0.5 + 0.3 * (1 + len({s.slot for s in self.spans}))))[1] if axes is None else axes
        )
        for state in ("PREFILL", "DECODE"):
            chosen = [s for s in self.spans if s.state == state]
            bars = [s.end_ms - s.begin_ms for s in chosen]
            rows, begins = [s.slot for s in chosen], [s.begin_ms for s in chosen]
            axes.barh(rows, bars, left=begins, height=0.8, color=COLORS[state], label=state.lower())
        gone = [m.at_ms for m in self.marks if m.what == "preempted"]
        if gone:
            axes.plot(gone, [-1] * len(gone), "x", color=COLORS["preempted"], label="preempted")
        axes.set(xlabel="time (ms)", ylabel="slot", title=f"{len(self.steps)} steps")
        axes.invert_yaxis()
        axes.legend(fontsize=8, loc="upper right")
        return axes

    def __repr__(self) -> str:
        slots = len({s.slot for s in self.spans})
        gone = sum(m.what == "preempted" for m in self.marks)
        steps = f"{len(self.steps)} steps in {self.duration_ms:.1f} ms"
        return f"<zinc_rt.Timeline of {steps}, {slots} slots, {gone} preemptions>"

    def _repr_html_(self) -> str:
        """A picture that needs no library: a row for the steps and one for each slot."""
        width, row, left = 900, 18, 60
        scale = (width - left) / max(self.duration_ms, 1e-9)
        slots = sorted({s.slot for s in self.spans})
        shapes = []

        def bar(y: int, begin: float, length: float, color: str, title: str) -> None:
            x, w = left + begin * scale, max(length * scale, 0.5)
            size = f'width="{w:.1f}" height="{row - 4}"'
            words = f"<title>{html.escape(title)}</title>"
            shapes.append(f'<rect x="{x:.1f}" y="{y}" {size} fill="{color}">{words}</rect>')

        for s in self.steps:
            words = f"step {s.index}: {s.n_decode} decode, {s.n_prefill} prefill, {s.n_waiting} waiting"
            bar(0, s.begin_ms, s.duration_ms, "#999999", f"{words}, {s.duration_ms:.2f} ms")
        for s in self.spans:
            words = f"{s.tenant}: {s.state.lower()}, {s.n_tokens} tokens, {s.end_ms - s.begin_ms:.2f} ms"
            bar(row * (1 + slots.index(s.slot)), s.begin_ms, s.end_ms - s.begin_ms, COLORS[s.state], words)
        names = ["steps", *(f"slot {slot}" for slot in slots)]
        texts = [f'<text x="0" y="{row * i + 12}" font-size="11">{name}</text>' for i, name in enumerate(names)]
        height = row * len(names)
        return (
            f"<div>{html.escape(repr(self)[1:-1])}; orange: prompts, blue: streams</div>"
            f'<svg width="{width}" height="{height}" xmlns="http://www.w3.org/2000/svg">{"".join(texts + shapes)}</svg>'
        )
