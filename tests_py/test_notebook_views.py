"""What notebooks show: tables of cards, plans, ledgers and quotas, and the picture of a timeline."""

import html.parser
import json
import xml.etree.ElementTree

import pytest

import zinc_rt
from tenant_helpers import FREE


class _Tags(html.parser.HTMLParser):
    """Fails on tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(value):
    return " ".join(_Tags(value._repr_html_()).texts)


def test_tables(tiny_engine):
    card = tiny_engine.model_card()
    assert type(card) is not dict and json.loads(json.dumps(card)) == dict(card)
    assert "Model tiny" in shown(card) and "weight_bytes_by_format" in shown(card) and " MB)" in shown(card)
    assert "kv_pages" in shown(tiny_engine.memory_plan())
    tenant = tiny_engine.tenant("<b>", zinc_rt.TenantQuota(isolation_group="<i>"))
    assert "p99_ttft_ms" in shown(tenant.ledger()) and "<i>" in shown(tenant.quota)


def test_a_timeline_has_the_steps_and_slots(tiny_model, tmp_path):
    with zinc_rt.Engine(tiny_model, max_slots=3) as engine:
        with engine.timeline() as timeline:
            assert timeline.steps == []
            engine.generate(["the thin", "an", "in"], tenant="<alice>", max_tokens=5, **FREE)
        with engine.trace(tmp_path / "t.json"):
            engine.generate("the", max_tokens=2, **FREE)
    assert sum(s.n_tokens for s in timeline.spans) == 15
    assert {s.tenant for s in timeline.spans} == {"<alice>"} and {s.state for s in timeline.spans} == {
        "PREFILL",
        "DECODE",
    }
    assert sum(s.n_decode for s in timeline.steps) == 12
    assert [m.what for m in timeline.marks].count("finished") == 3
    assert all(s.begin_ms <= s.end_ms <= timeline.duration_ms for s in timeline.spans)
    picture = timeline._repr_html_()
    assert "of " in shown(timeline)
    svg = xml.etree.ElementTree.fromstring(picture[picture.index("<svg") :].removesuffix("</div>"))
    bars = svg.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == len(timeline.steps) + len(timeline.spans)
    assert all(0 <= float(bar.get("x")) and float(bar.get("x")) + float(bar.get("width")) <= 901 for bar in bars)
    read = zinc_rt.Timeline.read(tmp_path / "t.json")
    assert len(read.steps) == 2 and repr(read).startswith("<zinc_rt.Timeline of 2 steps in ")


def test_a_timeline_is_filled_after_an_exception(tiny_engine):
    with pytest.raises(KeyError), tiny_engine.timeline() as timeline:
        tiny_engine.generate("the", max_tokens=2, **FREE)
        raise KeyError
    assert timeline.steps


def test_a_timeline_is_drawn(tiny_engine, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[notebooks]')")
    with tiny_engine.timeline() as timeline:
        tiny_engine.generate(["the", "an"], max_tokens=3, **FREE)
    axes = timeline.plot()
    assert axes.get_xlabel() == "time (ms)" and axes.get_ylabel() == "slot" and len(axes.patches) == len(timeline.spans)
