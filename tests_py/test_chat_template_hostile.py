"""Hostile templates, rendered with the limits that every request gets: they end with an error that says why, within a
second of processor time, in bounded memory, and the process goes on."""

import json
import subprocess
import sys

import pytest

LOOP, END = "{% for i in range(100000) %}", "{% endfor %}"
LONG = "{% set x = 'a' * 8000000 %}"
EXHAUSTED, REFUSED = "Exhausted", "InvalidArgument"
# name: template, kind of error, a part of its message
HOSTILE = {
    "endless macro": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", EXHAUSTED, "nested too deep"),
    "macro given itself": ("{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}", EXHAUSTED, "nested too deep"),
    "macro with its own arguments": (
        "{% macro m() %}{{ m(*varargs, **kwargs) }}{% endmacro %}{{ m(1) }}",
        EXHAUSTED,
        "nested too deep",
    ),
    "exponential macro": (
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
        EXHAUSTED,
        "takes more than",
    ),
    "recursive loop": ("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", EXHAUSTED, "nested too deep"),
    "loops in loops": (LOOP + LOOP + LOOP + END * 3, EXHAUSTED, "takes more than"),
    "a billion turns": ("{% for i in range(10**9) %}{% endfor %}", REFUSED, "Range too big"),
    "a list of a billion": ("{{ ([1] * 10**9)|length }}", EXHAUSTED, "bytes of values wanted"),
    "a text of a billion": ("{{ 'a' * 10**9 }}", EXHAUSTED, "bytes of values wanted"),
    "a text times and times": ("{{ 'a' * 1000 * 1000 * 1000 * 1000 }}", EXHAUSTED, "bytes of values wanted"),
    "a number of a billion digits": ("{{ 10 ** 10 ** 10 }}", REFUSED, "64 bits"),
    "a namespace that doubles": (
        "{% set ns = namespace(s='ab') %}" + LOOP + "{% set ns.s = ns.s ~ ns.s %}" + END,
        EXHAUSTED,
        "values need more than",
    ),
    "a list that doubles": (
        "{% set ns = namespace(l=[1]) %}" + LOOP + "{% set ns.l = ns.l + ns.l %}" + END,
        EXHAUSTED,
        "bytes",
    ),
    "a namespace that grows": (
        "{% set ns = namespace(l=[]) %}" + LOOP + LOOP + "{% set ns.l = [ns.l, 'a' * 100] %}" + END + END,
        EXHAUSTED,
        "bytes",
    ),
    "a namespace in itself": ("{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns }}", EXHAUSTED, "nested too deep"),
    "a list in itself, compared": (
        "{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns.l == [ns.l] }}{{ ns.l|string }}",
        EXHAUSTED,
        "nested too deep",
    ),
    "a self-made deep list as JSON": (
        "{% set ns = namespace(l=[]) %}" + LOOP + "{% set ns.l = [ns.l] %}" + END + "{{ ns.l|tojson }}",
        EXHAUSTED,
        "nested too deep",
    ),
    "replacements in a row": (
        "{{ 'a'" + "|replace('a', 'a' * 1000)" * 60 + " }}",
        EXHAUSTED,
        "bytes of values wanted",
    ),
    "a replacement of nothing": ("{{ ('a' * 8000000)|replace('', 'x' * 100) }}", EXHAUSTED, "bytes of values wanted"),
    "nested filter blocks": ("{% filter upper %}" * 5000 + "{% endfilter %}" * 5000, EXHAUSTED, "nested too deep"),
    "filters over long text": (LONG + LOOP + "{{ x|title|length }}" + END, EXHAUSTED, "takes more than"),
    "a wide indent": ("{{ 'x\ny'|indent(10**9) }}", EXHAUSTED, "bytes of values wanted"),
    "an indent of many lines": ("{{ ('x\n' * 1000000)|indent(1000) }}", EXHAUSTED, "bytes of values wanted"),
    "a wide centre": ("{{ 'x'|center(10**9) }}", EXHAUSTED, "bytes of values wanted"),
    "a wide format": ("{{ '%1000000000s'|format('a') }}", REFUSED, "too big"),
    "wide JSON": ("{{ [1]|tojson(indent=10**9) }}", EXHAUSTED, "bytes"),
    "many lines": ("{{ ('\\n' * 8000000).splitlines()|length }}", EXHAUSTED, "bytes of values wanted"),
    "many words": ("{{ ('a ' * 4000000).split()|length }}", EXHAUSTED, "values need more than"),
    "a long join": ("{{ range(100000)|join('x' * 1000000) }}", EXHAUSTED, "bytes of values wanted"),
    "a lazy chain": (
        "{% set ns = namespace(s=[1]) %}" + LOOP + "{% set ns.s = ns.s|map('string') %}" + END + "{{ ns.s|list }}",
        EXHAUSTED,
        "deep",
    ),
    "a large output": (LOOP + "{{ 'x' * 1000 }}" + END, EXHAUSTED, "output is larger"),
    "a base that is not there": ("{% extends 'base' %}", REFUSED, "cannot load other templates"),
    "an include of itself": ("{% include self %}", REFUSED, "cannot load other templates"),
    "an import": ("{% import 'os' as os %}", REFUSED, "cannot load other templates"),
    "a block in itself": ("{% block a %}{{ self.a() }}{% endblock %}", REFUSED, "undefined"),
    "Python's insides": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", REFUSED, ""),
    "parentheses": ("{{ " + "(" * 100000 + "1" + ")" * 100000 + " }}", EXHAUSTED, "nested too deep"),
    "blocks": ("{% if 1 %}" * 100000 + "{% endif %}" * 100000, EXHAUSTED, "nested too deep"),
    "open marks": ("{{" * 500000, EXHAUSTED, "nested too deep"),
    "an open comment": ("{#" * 500000, REFUSED, "Missing end of comment"),
}

CHILD = """
import json, resource, sys, time
import zinc_rt
results = {}
for name, source in json.load(sys.stdin).items():
    begin = time.process_time()
    try:
        results[name] = ["none", f"rendered {len(zinc_rt.ChatTemplate(source).render())} characters"]
    except zinc_rt.errors.ZincError as error:
        results[name] = [type(error).__name__, str(error)]
    results[name].append(time.process_time() - begin)
    results[name].append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
results["still there"] = zinc_rt.ChatTemplate("{{ 1 + 1 }}").render()
json.dump(results, sys.stdout)
"""


@pytest.fixture(scope="module")
def results():
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps({name: source for name, (source, *_) in HOSTILE.items()}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    found = json.loads(child.stdout)
    assert found["still there"] == "2"
    return found


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_ends_with_a_clear_error(results, name):
    _, kind, part = HOSTILE[name]
    found, message, seconds, megabytes = results[name]
    assert (found, message[:20]) == (kind, "[chat_template] line"), message
    # A slow machine may reach the limit of time before that of memory.
    assert part in message or (part == "bytes" and "1000 ms" in message)
    # The limit is 1 s; a step that is under way ends first. A renderer without limits takes minutes and gigabytes.
    assert seconds < 2
    assert megabytes < 800
