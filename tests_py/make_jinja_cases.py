"""Writes tests_cpp/jinja/data/jinja_cases.jsonl: templates, contexts, and what Python's jinja2 makes of them.

Usage: python tests_py/make_jinja_cases.py tests_cpp/jinja/data/jinja_cases.jsonl   (needs jinja2 3.1)
"""

import json
import sys

from jinja_oracle import render

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <b>there</b> é 你好 🎉"},
    {
        "role": "assistant",
        "content": "Hello",
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": [1.5, None, True]}}}],
    },
    {"role": "tool", "content": "42"},
    {"role": "user", "content": ""},
]
G = {
    "messages": MESSAGES,
    "i": 7,
    "neg": -7,
    "zero": 0,
    "f": 2.5,
    "t": True,
    "fa": False,
    "n": None,
    "s": "Hello World",
    "e": "",
    "u": "héllo wörld ÀÉÎ ß ǆ Σας ﬁ",
    "ws": " \t pad me \n ",
    "q": 'it\'s "quoted"\\ \n\t\x01\x7f\u00a0\u200b',
    "l": [3, 1, 2],
    "ls": ["b", "A", "c", "a"],
    "el": [],
    "d": {"b": 1, "A": 2, "c": {"x": [1, 2]}},
    "ed": {},
    "nested": [{"k": "x", "v": 1, "o": {"p": 5}}, {"k": "Y", "v": 3, "o": {"p": 4}}, {"k": "x", "v": 2, "o": {"p": 6}}],
    "floats": [0.1, 1e22, 1e-5, 123456789.123, 1.0, -0.0, 1e16, 1e15, 0.0001, 1.5e300, 5e-324],
    "items": "shadow",
    "bos_token": "<s>",
    "eos_token": "</s>",
}

CASES: list[tuple[str, dict]] = []


def add(*templates, **context):
    for template in templates:
        CASES.append((template, context))


def expressions(text, **context):
    """One case a line, the line printed as an expression."""
    for line in text.strip().splitlines():
        add("{{ " + line.strip() + " }}", **context)


# White space control: every sign before and after every kind of tag.
for tag in ("{%A if t B%}", "{%A set x = 1 B%}", "{{A s B}}", "{#A note B#}", "{%A raw B%}"):
    for before in ("", "-", "+"):
        for after in ("", "-", "+"):
            opened = tag.replace("A", before).replace("B", after)
            if "{{" in opened and after == "+":
                continue
            if "raw" in opened and after == "+":
                continue
            closed = {"i": "{% endif %}", "r": "{% endraw %}"}.get(opened.strip("{%-+ ")[0], "")
            add(f"a\n \t {opened} \n b {closed} \n\n c\n")
for before in ("", "-", "+"):
    for after in ("", "-", "+"):
        add(
            f"x {{% if t %}}\n  y\n  {{%{before} endif {after}%}}\n  z",
            f"{{% raw %}}\n {{{{ x }}}} \n {{%{before} endraw {after}%}}\n z",
        )
add(
    "{",
    "\n",
    "a\n",
    "a\n\n",
    "\n\na",
    "a\r\nb\rc\r\n",
    "{{ s }}\n",
    "{{ s }}\n\n",
    "{% if t %}\n{% endif %}\n",
    "   {% if t %}x{% endif %}   ",
    "  {{ s }}  ",
    "  {# c #}  x",
    "  {# c #}\n  x",
    "{# a {{ b }} {% c %} #}x",
    "{#-#}x",
    "{# - #}x",
    "a {#- x -#} b",
    "{% if t %}  {% if t %}  x  {% endif %}  {% endif %}",
    "\n  {% for x in l %}\n    {{ x }}\n  {% endfor %}\n",
    "{% for x in l -%}\n {{ x }}\n{%- endfor %}",
    "{{ '{{' }}{{ '}}' }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a'] }}",
    "a{b}c{ {",
    "{",
    "%} }} #}",
    "x {%- raw -%}  {{ y }} {%- endraw -%}  z",
    "\u00a0{%- if t %}x{% endif %}",
    "a\u2003{{- s }}",
    "\x0c{%- if t %}x{%- endif %}",
    "  \x0b{% if t %}\nx{% endif %}",
    "{%if t%}x{%endif%}",
    "{%-if t-%} x {%-endif-%}",
    "{% raw %}{% endraw %}",
    "{% raw %}{# #}{{ {% endraw %}",
    "a\n{% raw %}\n  b\n{% endraw %}\nc",
    "{% set a = 'x\ny' %}{{ a }}",
    "{{ 'x\r\ny' }}",
    "{{\ns\n}}",
    "{%\nif t\n%}\nx{% endif %}",
    "{% if t %}\r\nx\r\n{% endif %}\r\n",
    "{{ s -}}\n\n\n  x",
    "x  \n\n {{- s }}",
    "{% if t -%}\n\n  x  \n{%- endif %}",
    "line\n    {%+ if t %}x{% endif %}",
    "{% if t +%}\nx{% endif %}",
    "a {# x\ny\n#} b",
    "a\n{# x #}\nb",
    "a\n {# x -#}\n b",
    "a\n {#- x #}\n b",
    "a {# x +#}\n b",
    "{{ 1 }}{% if t %}  {% endif %}\n{{ 2 }}",
)

# Literals and operators.
expressions(
    r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, -7 // -2
7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 5 % 2.5, -0.0 // 1, 1 // 0.3
2 ** 10, 2 ** -1, 2 ** 0.5, -2 ** 2, 2 ** 3 ** 2
1 / 3, 10 / 5, 1 / 4
1_000, 0x1F, 0o17, 0b101, 1.5e3, 1E-2, 0.5, 00
'a' 'b' "c"
'a' ~ 1 ~ none ~ 1.0 ~ [1] ~ missing
(1 ~ 2) ~ 3, '1' ~ 2 + '3'
'a' * 3, 3 * 'ab', 'a' * 0, 'a' * -1
[1] * 2, (1, 2) * 2, [1] + [2], (1,) + (2,)
true, false, none, True, False, None
[1, 'a', none, true, 1.0, [], {}, ()]
(1,), (), (1, 2,), [1,], {'a': 1,}
{'a': 1, 2: 'b', none: 3, true: 4, 1.5: 5, (1, 2): 6}
{1: 'a', 1.0: 'b', true: 'c'}
not t, not e, not not 1, not none
1 and 2, 0 and 2, 0 or 'x', '' or none, 1 or 2 and 3
t and not fa or n
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2 != 1, 1 == 1.0, true == 1, 'a' < 'b', [1, 2] < [1, 3], (1,) <= (1, 0)
'é' > 'z', 'Z' < 'a', '🎉' > '你'
1 == '1', none == false, [] == (), {} == {}, {'a': 1} == {'a': 1.0}, [1, [2]] == [1, [2]]
'a' in 'abc', 'x' not in 'abc', 1 in [1, 2], 'a' in {'a': 1}, none in [none], '' in '', 1 in (2, 3), 3 in range(5)
1 if t else 2, (1 if fa), 1 if fa else 2 if fa else 3
'yes' if s is string and l else 'no'
-i, +i, - -i, -f, +t, -t
i is odd, i is even, neg is odd, 6 is divisibleby 3, 6 is divisibleby(4)
1 is integer, true is integer, 1.0 is integer, 1.0 is float, 1 is float, true is number, '1' is number
s is string, l is string, d is mapping, l is mapping, l is sequence, s is sequence, d is sequence, 1 is sequence, range(3) is sequence, missing is sequence
l is iterable, s is iterable, 1 is iterable, none is iterable, missing is iterable, (l|map('string')) is iterable
missing is defined, s is defined, n is defined, missing is undefined, d.zz is undefined, n is none, zero is none
t is true, 1 is true, fa is false, 0 is false, t is boolean, 1 is boolean
'abc' is lower, 'ABC' is upper, 'aBc' is lower, '1' is lower, 5 is upper
1 is eq 1, 1 is equalto 2, 1 is ne 2, 1 is lt 2, 2 is gt 1, 1 is le 1, 1 is ge 2, 1 is lessthan(2), 1 is greaterthan(2)
1 is in [1, 2], 'x' is in 'abc', 1 is not in [1]
n is sameas none, t is sameas true, 1 is sameas true, d is sameas d, l is sameas [3, 1, 2]
range is callable, s is callable, s.upper is callable, missing is callable, namespace is callable
'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test
('<'|safe) is escaped, '<' is escaped, ('<'|e) is escaped
1 is not none, s is not mapping
not s is string
s is string == true
i + f, i - f, i * f, t + t, t * 5, i / t
9223372036854775807, -9223372036854775807 - 1
9223372036854775806 + 1, 3037000499 * 3037000499
0.1 + 0.2, 1e308 * 10, -1e308 * 10, 1e22, 1e21 + 1, 100000000000000000000.0, 1e15, 1e16, 0.00001, 123456.789e3
floats
floats|map('string')|join(' ')
[s, q, u, "it's", '"', 'a\'b"c', '\\', '\n\r\t\0\x1b']
"\x41\u00e9\U0001F600\101\7\a\b\f\v end \d \é \你 \🎉 \'"
"""
)
expressions(
    r"""
s[0], s[-1], s[4], u[1], u[-1], s[100]|default('none'), u[0:5], u[::-1], u[-3:], u[::2], u[1:8:3], u[8:1:-2]
s[1:4], s[:5], s[6:], s[:], s[::2], s[::-1], s[-3:], s[:-3], s[10:2], s[2:10:3], s[10:2:-3], s[100:], s[-100:3]
l[0], l[-1], l[5]|default('x'), l[1:], l[:-1], l[::-1], l[::2], l[5:], l[none:2], l[1:none], l[true:]
(1, 2, 3)[1:], (1, 2, 3)[::-1], range(10)[2:8:2], range(10)[::-1], range(10)[-1], range(5)[1:]|list
d.b, d['b'], d.c.x[1], d['c']['x'][0], d.zz, d['zz'], d.c.zz|default('none')
nested.0.k, nested[1].o.p, nested.0.o['p'], messages.0.role, messages[1]['content'][3:8]
d.items()|list, d.keys()|list, d.values()|list, d.get('b'), d.get('x'), d.get('x', 5), d.items(), d.keys(), d.values()
d['items'] is callable, d.copy() == d, d.items()|length, 'b' in d.keys(), 1 in d.values(), ('b', 1) in d.items()
{'items': 1}.items()|list, {'items': 1}['items'], {'keys': 2}|attr('keys') is callable, {'x': 1}|attr('x')
l.count(1), l.index(2), l.copy(), (1, 2, 1).count(1), (1, 2).index(2), range(5).count(3), range(3, 6).index(4)
s.__class__|default('hidden'), d._private|default('p'), (s.zz) is undefined, 5 .real, i.imag, f.is_integer(), 2.0.is_integer(), i.bit_length()
l.append is defined, l.append, d.update, l.pop is undefined, d.pop ~ '', l.sort, d.setdefault|default('no')
range(5), range(2, 5), range(0, 10, 3), range(5)|list, range(5, 0, -2)|list, range(0)|list, range(3)|length, range(-3)|list
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('a', 1), (2, 3)]), dict()
namespace(a=1).a, namespace({'x': 2}, y=3).y, namespace(a=1), namespace().zz|default('none')
messages|length, messages[1:]|length, messages[-1].content == '', messages[2].tool_calls[0].function.name
missing, (1 if fa) is defined
(missing)|length, (missing)|list, missing|string, missing == missing, missing == none, missing in [1], missing|default('d'), missing|d('x', true), e|default('d'), e|default('d', true), n|default('d'), n|default('d', true), zero|d(5, boolean=true)
'%s and %s' % ('a', 1), '%d%%' % 5, '%5.2f|%-5s|%05d|%+d|% d' % (3.14159, 'a', 42, 5, 5), '%x %X %o %#x %e %g' % (255, 255, 8, 255, 12345.678, 0.0001), '%(a)s-%(b)r' % {'a': 1, 'b': 'x'}, '%r %a' % ('é', 'é'), '%c%c' % (65, 'B'), '%s' % none, '%.3s|%10s|%*d' % ('abcdef', 'x', 5, 3), '%i %u' % (3.9, 4)
'{} {}'.format(1, 'a'), '{1} {0}'.format('a', 'b'), '{a} {b.c} {d[x]} {l[1]}'.format(a=1, b={'c': 2}, d={'x': 3}, l=[4, 5]), '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd'), '{:05d} {:+} {:,} {:_} {:x} {:#b} {:o}'.format(42, 5, 1234567, 1234567, 255, 5, 8), '{:.2f} {:8.3f} {:e} {:g} {:%} {:.1%}'.format(3.14159, 2.5, 12345.678, 0.00001, 0.25, 0.256), '{!r} {!s} {!r:>6}'.format('a', 'b', 'c'), '{{}} {{{}}}'.format(1), '{:{}}|{:{w}}'.format('a', 4, 'b', w=3), '{:.3}'.format('abcdef'), '{:08.2f}|{:<8}|{:>8}'.format(-3.14159, 1.5, 2), '{:010,.2f}'.format(12345.678), '{}'.format(1.0), '{:.3}'.format(1234.5), '{:.10}'.format(1.0), '{:n}'.format(5), '{:5}|{:5}'.format(true, 1), '{a}'.format_map({'a': 7})
"""
)

# String methods.
expressions(
    r"""
s.upper(), s.lower(), s.title(), s.swapcase(), s.capitalize(), s.casefold()
u.upper(), u.lower(), u.title(), u.capitalize(), u.swapcase()
'ΑΣ ΣΑΣ. Σ'.lower(), 'ŉ ǰ ΐ ﬃ'.upper(), 'ǆ'.title(), "they're bill's".title(), 'ß'.capitalize(), 'İ'.lower()|length
ws.strip(), ws.lstrip(), ws.rstrip(), 'xxaxx'.strip('x'), 'abcba'.strip('ab'), 'xyxa'.lstrip('xy'), 'axy'.rstrip('yx'), '\u2003a\u00a0'.strip(), 'éaé'.strip('é'), '\x1ca'.strip()
'a,b,,c'.split(','), 'a b  c '.split(), 'a b c'.split(' ', 1), 'a,b,c'.split(',', maxsplit=1), 'abc'.split('x'), ''.split(), ''.split(','), ' a  b '.split(none, 1), 'a--b--c'.split('--'), '  '.split(), 'a b'.split(maxsplit=0)
'a,b,c'.rsplit(',', 1), 'a b c'.rsplit(none, 1), ' a b '.rsplit(), 'a,b'.rsplit(','), 'a--b--c'.rsplit('--', 1), 'aaa'.rsplit('aa'), 'aaa'.split('aa')
'a\nb\r\nc\rd\x0be\u2028f\n'.splitlines(), 'a\n\nb'.splitlines(true), ''.splitlines(), '\n'.splitlines()
s.startswith('Hell'), s.startswith(('x', 'He')), s.endswith('ld'), s.endswith('x'), s.startswith('lo', 3), s.endswith('Hell', 0, 4), s.startswith(''), s.startswith(()), u.startswith('é', 1)
s.replace('l', 'L'), s.replace('l', 'L', 2), s.replace('', '-'), s.replace('', '-', 3), s.replace('o', ''), 'é你'.replace('', '|'), s.replace('zz', 'y'), ''.replace('', 'x')
s.find('o'), s.find('o', 5), s.find('zz'), s.rfind('o'), s.rfind('o', 0, 5), u.find('w'), u.rfind('l'), s.find(''), s.find('', 20), s.index('W'), s.rindex('l'), s.find('o', -4), s.count('l'), s.count('l', 4), s.count(''), 'aaaa'.count('aa'), u.count('l', 2, 4)
'-'.join(['a', 'b']), ''.join(()), ', '.join(d), '-'.join('abc'), '-'.join(ls|map('upper'))
'abc'.center(8), 'abc'.center(9, '*'), 'ab'.center(5), 'a'.center(4), 'abcd'.center(7), 'abc'.ljust(5, '.'), 'abc'.rjust(5), 'abc'.zfill(6), '-5'.zfill(4), '+5'.zfill(4), 'é'.center(4, '中'), 'abc'.ljust(2)
'Abc'.isalpha(), 'a1'.isalnum(), '12'.isdigit(), '½'.isnumeric(), '²'.isdigit(), '²'.isdecimal(), ' \n'.isspace(), ''.isalpha(), 'abc'.islower(), 'ABC1'.isupper(), 'Ab Cd'.istitle(), 'aB'.istitle(), 'abc'.isascii(), 'é'.isascii(), 'a b'.isidentifier(), 'a_1'.isidentifier(), '1a'.isidentifier(), 'a\n'.isprintable(), '你好'.isalpha()
'prefix-x'.removeprefix('prefix-'), 'x.py'.removesuffix('.py'), 'x'.removeprefix('y'), 'x'.removesuffix('')
'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('x'), 'abc'.rpartition('x')
'a\tb'.expandtabs(), 'a\tb\n\tc'.expandtabs(4), 'é\tb'.expandtabs(3)
'</think>' in 'a</think>b', 'a</think>b'.split('</think>')[-1].lstrip('\n'), 'a<x>b'.split('<x>')|last
"""
)

# Filters.
expressions(
    r"""
neg|abs, -2.5|abs, true|abs
[1, 2, 3, 4, 5]|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list, []|batch(2)|list, 'abc'|batch(2)|list
[1, 2, 3, 4, 5, 6, 7]|slice(3)|list, [1, 2, 3, 4]|slice(3, 'x')|list, range(5)|slice(2)|list
'hELLO'|capitalize, 'ab'|center(6), s|upper, s|lower, 'hello-wORLD (foo [bar'|title, "it's a {x <y"|title, 5|upper
d|dictsort, d|dictsort(true), d|dictsort(by='value', reverse=true) if false else d|dictsort(reverse=true), {'b': 2, 'a': 3}|dictsort(false, 'value')
'<a href="x">\'&'|e, '<'|escape, '<'|safe|e, '<'|safe|forceescape, 5|e, none|e
('<b>'|safe) + '<', '<' + ('<b>'|safe), ('<'|safe) ~ '<', ('a'|safe) * 2, ('%s'|safe) % '<', ('{}'|safe).format('<'), ['<'|safe], ('a,<'|safe).split(','), ('<'|safe).join(['<', 'x'|safe]), ('<a>'|safe)|upper, ('ab'|safe)[0], ('x<'|safe).replace('x', '<'), '<'|safe == '<', ('<'|safe)|string, '-'.join(['<'|safe])
13|filesizeformat, 1|filesizeformat, 1000|filesizeformat, 1500000|filesizeformat, 1024|filesizeformat(true), '12345678'|filesizeformat, 1e30|filesizeformat, 999|filesizeformat
l|first, 'abc'|first, el|first, d|first, l|last, 'abc'|last, el|last, d|last, range(3)|last, (l|map('string'))|first, missing|first, missing|last
'1.5'|float, 'x'|float, 'x'|float(2), none|float, ' 1e3 '|float, '1_0'|float, 'inf'|float, 'nan'|float, '-Infinity'|float, true|float, 3|float, '1_'|float, '0x1'|float, '.5'|float, '5.'|float, [1]|float
'42'|int, '42.9'|int, 'x'|int, 'x'|int(5), 3.99|int, -3.99|int, '0x1A'|int(base=16), '0b11'|int(0, 2), '0o17'|int(0, 0), '1_000'|int, ' 12 '|int, none|int, true|int, [1]|int, '-5'|int, '+5'|int, 'ff'|int(0, 16), 'inf'|int, 'nan'|int, '1e3'|int, '12abc'|int(default=-1), '1'|int(base='x'), '٣'|length
'%s-%s'|format(1, 'x'), '%(a)s'|format(a=5), 'x'|format, '%d'|format(3)
nested|groupby('k')|list, nested|groupby('o.p')|map(attribute='grouper')|list, nested|groupby('k', case_sensitive=true)|map('first')|list, nested|groupby('zz', default='q')|map('first')|list, nested|groupby(attribute='v')|map(attribute='list')|map('length')|list
'a\nb\n\nc'|indent, 'a\nb'|indent(2), 'a\nb'|indent(2, true), 'a\n\nb'|indent(2, blank=true), 'a\nb'|indent('> '), 'a\n'|indent(2), 'a\r\nb'|indent(1), ''|indent(2, true)
d|items|list, ed|items|list, missing|items|list, d|items|first
l|join, l|join(', '), ls|join('-'), nested|join(',', attribute='k'), nested|join(d='|', attribute='o.p'), 'abc'|join('.'), [1, none, 'a', 1.5, [1]]|join(' '), el|join(','), l|join(1), missing|join(','), d|join(',')
l|length, s|length, u|length, d|count, el|length, '🎉é'|length, (1, 2)|count
'abc'|list, d|list, l|list, (1, 2)|list, range(3)|list, missing|list
ls|map('upper')|list, nested|map(attribute='k')|list, nested|map(attribute='zz', default='D')|list, nested|map(attribute='o.p')|list, ls|map('replace', 'b', 'X')|list, [[1, 2], [3]]|map('join', '-')|list, ['1', 'x']|map('int', default=9)|list, el|map('upper')|list, [[5, 6]]|map(attribute=1)|list, [[5, 6]]|map(attribute='0')|list
l|max, l|min, ls|max, ls|min, ls|max(true), ls|min(case_sensitive=true), nested|max(attribute='v'), nested|min(attribute='o.p'), el|max|default('none'), 'hello'|max, [1, 2.5, true]|max
l|reject('odd')|list, l|reject('gt', 1)|list, [0, 1, '', 'a', none]|reject|list, nested|rejectattr('k', 'eq', 'x')|list, nested|rejectattr('zz')|list|length, nested|rejectattr('v', 'in', [1, 2])|map(attribute='v')|list
l|select('odd')|list, l|select('divisibleby', 3)|list, [0, 1, '', 'a', none]|select|list, ls|select('in', ['a', 'b'])|list, nested|selectattr('k', 'equalto', 'x')|list|length, nested|selectattr('o.p', 'gt', 4)|map(attribute='v')|list, nested|selectattr('zz', 'defined')|list, nested|selectattr('k')|list|length, messages|selectattr('role', 'equalto', 'user')|list|length, messages|selectattr('tool_calls', 'defined')|map(attribute='role')|list, l|select('==', 1)|list
'abcabc'|replace('a', 'x'), 'aaa'|replace('a', 'b', 2), 'a'|replace('', '-'), 5|replace(5, 6), 'a1'|replace(1, none), '<'|safe|replace('<', 'x')
'abc'|reverse, l|reverse|list, (1, 2)|reverse|list, range(3)|reverse|list, d|reverse|list, u|reverse, ''|reverse, (l|map('string'))|reverse
42.55|round, 42.55|round(1), 2.5|round, 3.5|round, -2.5|round, 42.55|round(1, 'floor'), 42.51|round(1, 'ceil'), 42|round, 42|round(-1), 45|round(-1), 55|round(-1), 1234.5|round(-2), 1.005|round(2), 0.5|round, 1e20|round, 42.5|round(0, 'ceil'), 5|round(2, 'floor'), true|round, 2.675|round(2), 1234567.891|round(2), 25.0|round(-1), 35.0|round(-1)
l|sort, l|sort(true), ls|sort, ls|sort(case_sensitive=true), nested|sort(attribute='v')|map(attribute='v')|list, nested|sort(attribute='k,v')|map(attribute='v')|list, nested|sort(true, attribute='o.p')|map(attribute='o.p')|list, 'bca'|sort, [none, none]|sort, [[2], [1]]|sort, el|sort, d|sort, [1.5, 1, true, 0]|sort, ['é', 'z', 'Z']|sort
1|string, none|string, l|string, 1.0|string, true|string, s|string
'<p>Hello <b>World</b>!</p>  a\n b <!-- c --> &amp; &lt;x&gt; &#65;&#x42;'|striptags, 'a < b'|striptags, '<unclosed'|striptags
l|sum, [1.5, 2]|sum, nested|sum('v'), nested|sum(attribute='o.p', start=10), el|sum, [[1], [2]]|sum(start=[]), [true, true]|sum
ws|trim, 'xxaxx'|trim('x'), 5|trim, none|trim, '\u3000a'|trim
'Hello big World'|truncate(8), 'Hello big World'|truncate(9, true), 'Hello big World'|truncate(9, false, '..'), 'Hello'|truncate(3, leeway=0), 'abcdef'|truncate(5), 'a'*300|truncate if false else ('a '*200)|truncate|length, 'foo bar baz qux'|truncate(11, leeway=0), 'foo bar baz qux'|truncate(9, false, '...', 0), 'éèê èèè é'|truncate(6, leeway=0), 'nospacehere'|truncate(6, leeway=0)
ls|unique|list, ls|unique(true)|list, [1, 1.0, true, '1']|unique|list, nested|unique(attribute='k')|map(attribute='v')|list, 'abca'|unique|list, [none, none]|unique|list
'a b/c?d=é&x'|urlencode, {'a b': 'c/d', 'e': 1}|urlencode, [('a', '1 2'), ('b', 'é')]|urlencode, 5|urlencode, ''|urlencode, 'a~b-c_d.e'|urlencode
'Hello, wörld foo_bar 12'|wordcount, ''|wordcount, "it's"|wordcount
'aaa bbb ccc ddd'|wordwrap(7), 'aaaaaaaaaa bb'|wordwrap(4), 'aaaaaaaaaa bb'|wordwrap(4, false), 'a b c\nd e f'|wordwrap(3), 'aaa bbb'|wordwrap(3, wrapstring='|'), 'x   y  z'|wordwrap(3), ''|wordwrap(5), '  lead in'|wordwrap(4), 'well-known word'|wordwrap(6, break_on_hyphens=false), 'ab cdefgh ij'|wordwrap(5), 'a well-known-to-all case -- so--called, x-1-y e-mail'|wordwrap(6), 'ab-cdefgh--ij'|wordwrap(5, false)
{'a': 1, 'b': none, 'c': '<', 'd': missing}|xmlattr, {}|xmlattr, {'a': 'x'}|xmlattr(false)
s|attr('upper') is callable, s|attr('zz')|default('no'), namespace(a=5)|attr('a'), d|attr('b')|default('not an attribute')
(d|items|list)[0], l|map('string')|join, (l|select('odd')|list)[0], l|first|string|length
d|pprint, l|pprint, s|pprint, {'b': 1, 'a': [1, 2]}|pprint, ((1,))|pprint, none|pprint
messages|pprint
(['word'] * 30)|pprint
('lorem ipsum dolor sit amet ' * 8)|pprint
[('some text with\nnew lines and words ' * 4), {'key': 'value ' * 20}]|pprint
"""
)
expressions(
    r"""
d|tojson, l|tojson, s|tojson, q|tojson, u|tojson, n|tojson, t|tojson, 1.5|tojson, 1e22|tojson, 1|tojson, (1, 2)|tojson, el|tojson, ed|tojson
messages|tojson
messages|tojson(indent=2)
d|tojson(indent=4)
[[], {}, [1, [2, {}]], {'a': {}}]|tojson(indent=2), [1, 2]|tojson(indent=0), [1]|tojson(indent='\t'), [1]|tojson(indent=none), {'a': 1}|tojson(indent=1)
d|tojson(sort_keys=true), d|tojson(separators=(',', ':')), d|tojson(indent=2, separators=(', ', ' = ')), u|tojson(ensure_ascii=true), '🎉\x7f'|tojson(true), [u]|tojson(ensure_ascii=true, indent=2)
{1: 'a', none: 'b', true: 'c', 1.5: 'd', 'e': 'f'}|tojson, '\u2028</script>&\'\x00\x1f'|tojson, '"\\/\b\f\n\r\t'|tojson, floats|tojson, -0.0|tojson, ('<'|safe)|tojson
(1e308 * 10)|tojson, d.c|tojson|length, 'x'|tojson is string
"""
)

# Statements.
add(
    "{% for x in l %}{{ x }},{% endfor %}",
    "{% for x in el %}x{% else %}none{% endfor %}",
    "{% for x in l %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}",
    "{% for c in 'aé🎉' %}[{{ c }}]{% endfor %}",
    "{% for x in missing %}x{% else %}empty{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in [1, 1, 2] %}{% if loop.changed(x, 1) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in range(6) if x % 2 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in range(6) if x > 9 %}x{% else %}none{% endfor %}",
    "{% for x in range(6) if x is odd %}{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in range(5) if x %}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}",
    "{% for x in l|map('string') %}{{ loop.length }}{{ loop.last }}{{ x }} {% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for x in l %}{% set o = loop %}{% for y in l %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for n in tree recursive %}{{ loop.depth }}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
    "{% for n in tree recursive %}<{{ n.v }}{{ loop(n.c) if n.c }}{{ loop.depth0 }}>{% else %}E{% endfor %}",
    "{% for n in tree if n.v != 3 recursive %}{{ n.v }}{{ loop(n.c or []) }}{% endfor %}",
    "{% for x in range(10) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in range(5) %}{% if x == 3 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in range(5) %}{% break %}{% else %}else{% endfor %}",
    "{% for x in [1] %}{% continue %}{% else %}else{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}|{% endfor %}",
    "{% for x in l %}{% with y = x %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endwith %}{% endfor %}",
    "{% for x in l %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfilter %}{% endfor %}",
    "{% for x in l %}{% set b %}{% if x == 1 %}{% break %}{% endif %}q{% endset %}{{ b }}{% endfor %}",
    "{% if n %}a{% elif zero %}b{% elif t %}c{% else %}d{% endif %}",
    "{% if fa %}a{% elif fa %}b{% else %}d{% endif %}",
    "{% if missing %}a{% endif %}b",
    "{% if not missing %}a{% endif %}",
    "{% if l and d and s %}y{% endif %}",
    "{% if (l|select('gt', 9)) %}generator is true{% endif %}",
    "{% if 1, %}tuple{% endif %}",
    "{% set x = 5 %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [3, 4] %}{{ a }}{{ b }}",
    "{% set (a, b) = 'xy' %}{{ a }}{{ b }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x = 1 if fa %}[{{ x }}]",
    "{% set x %}a{{ s }}b{% endset %}{{ x }}",
    "{% set x | upper %}a{{ s }}{% endset %}{{ x }}",
    "{% set x | replace('a', 'b') | upper %}aa{% endset %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.y %}blk{% endset %}{{ ns.y }}",
    "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}{{ ns }}",
    "{% set ns = namespace(c=0) %}{% for x in l %}{% set ns.c = ns.c + x %}{% endfor %}{{ ns.c }}",
    "{% set c = 0 %}{% for x in l %}{% set c = c + x %}{{ c }}{% endfor %}{{ c }}",
    "{% for x in l %}{% if loop.first %}{% set y = x %}{% endif %}[{{ y }}]{% endfor %}",
    "{% set y = 9 %}{% for x in l %}{% if loop.first %}{% set y = x %}{% endif %}[{{ y }}]{% endfor %}{{ y }}",
    "{% if t %}{% set y = 1 %}{% endif %}{{ y }}",
    "{% if fa %}{% set s = 1 %}{% endif %}{{ s }}",
    "{% if fa %}{% set zz = 1 %}{% endif %}{{ zz is defined }}",
    "{% if t %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}",
    "{% for x in [1] %}{% set s = 'in' %}{{ s }}{% endfor %}{{ s }}",
    "{% for s in l %}{{ s }}{% endfor %}{{ s }}",
    "{% for l in l %}{{ l }}{% endfor %}{{ l }}",
    "{{ s }}{% set s = 'new' %}{{ s }}",
    "{% for x in l %}{{ z }}{% set z = x %}{{ z }}{% endfor %}{{ z is defined }}",
    "{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is string }}",
    "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}",
    "{% with x = 5 %}{% set x = 6 %}{{ x }}{% endwith %}{{ x is defined }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}",
    "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% filter capitalize %}abc{% endfilter %}",
    "{{ 'a\\\nb' }}",
    "{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ a }}{{ varargs|join('-') }}{{ kwargs.k }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% macro m() %}x{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}",
    "{% macro m(a, b) %}{% endmacro %}{{ m.arguments }}[{{ m(1) }}]",
    "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}+{{ b }}{% endcall %}",
    "{% macro m(x) %}<{{ caller(x) }}>{% endmacro %}{% for i in l %}{% call(y) m(i) %}{{ y }}{{ i }}{% endcall %}{% endfor %}",
    "{% macro m() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ m() }}",
    "{% macro outer() %}{% macro inner() %}i{% endmacro %}o{{ inner() }}{% endmacro %}{{ outer() }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}",
    "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 2 %}{{ m() }}",
    "{% macro m(s) %}{{ s }}{% endmacro %}{{ m('arg') }}{{ s }}",
    "{% macro m() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ m() }}{{ q is string }}",
    "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(x, y='d') %}{{ x }}{{ y }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'x': 5}) }}{{ m(*[1], **{'y': 2}) }}",
    "{% macro _p() %}p{% endmacro %}{{ _p() }}",
    "{% macro m(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}yes{% endcall %}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{%- macro m(x) -%}\n  {{ x }}\n{%- endmacro -%}\n{{ m(1) }} {{ m(2)|trim }}",
    "{% macro m() %}  <a>  {% endmacro %}{{ m()|trim }}{{ m() ~ 'x' }}{{ m()|length }}{{ m() is string }}",
    "{% call f() %}{% endcall %}{% macro f() %}{% endmacro %}"
    if False
    else "{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}{% call f() %}x{% endcall %}{% endcall %}",
    "{% generation %}a{{ s }}{% endgeneration %}",
    "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% set q = 1 %}{% endgeneration %}{{ q is string }}{% endfor %}",
    "a\n{% generation %}\nb\n{% endgeneration %}\nc",
    "{% print s, 1 %}",
    "{% block b %}x{{ s }}{% endblock %}",
    "{% block b %}{% set q = 1 %}{% endblock b %}{{ q is string }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
    "{% set j = joiner() %}{{ j() }}a{{ j() }}b",
    "{% for group in nested|groupby('k') %}{{ group.grouper }}:{% for x in group.list %}{{ x.v }}{% endfor %};{% endfor %}",
    "{% for k, g in nested|groupby('k') %}{{ k }}{{ g|length }}{% endfor %}",
    "{% set g = l|map('string') %}{{ g|join }}-{{ g|join }}",
    "{% set g = range(5)|select('odd') %}{{ 1 in g }}{{ g|list }}",
    "{% set it = l|reverse %}{{ it|first }}{{ it|list }}",
    "{{ s.__class__ is defined }}{{ s.__class__ }}{{ s._x is defined }}",
    "{% set loop2 = 1 %}{{ loop2 }}{{ loop is defined }}",
    "{% for x in l %}{% endfor %}{{ x is string }}",
    "{% if s is string %}{{ s | nosuchfilter if fa else 'ok' }}{% endif %}",
    "{% if fa %}{{ s | nosuchfilter }}{% endif %}ok",
    "{% if fa %}{{ s is nosuchtest }}{% endif %}ok",
    "{{ 'x' if t else s|nosuch }}",
    "{% if 'nosuch' is filter and s|nosuch %}{% endif %}ok",
    "{{ [1, 2, 3] | map('multiply') if fa else 'ok' }}",
    "{{ messages[0]['role'] }}{{ messages[0].content }}",
    "{%- for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}{%- endfor %}",
    "{{ raise_exception is callable }}{{ range is defined }}{{ lipsum is defined }}{{ cycler is defined }}",
    "{% set messages = messages[1:] %}{{ messages|length }}{% for m in messages %}{{ m.role }}{% endfor %}",
    "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role }} {% endfor %}",
    "{{ bos_token + 'x' + eos_token }}",
    "{{ (messages|last).role }}{{ messages|map(attribute='role')|join(',') }}",
    "{% for m in messages if m.role in ['user', 'assistant'] %}{{ loop.index }}{{ m.role }}{{ loop.last }} {% endfor %}",
    "{{ (messages|selectattr('role', 'equalto', 'system')|list|first).content }}",
    "{% set first = messages|first %}{{ first['role'] }}",
    "{{ messages[0] }}",
    "{{ messages[2].tool_calls }}",
    "{{ dict(messages[0], extra=1)|tojson }}",
    "{% set x = namespace(v=[]) %}{% for i in l %}{% set x.v = x.v + [i * 2] %}{% endfor %}{{ x.v }}",
    tree=[{"v": 1, "c": [{"v": 2}, {"v": 3, "c": [{"v": 4}]}]}, {"v": 5, "c": []}],
)

# Errors.
ERRORS = """
{{ raise_exception('no') }}
{{ missing.x }}
{{ missing['x'] }}
{{ missing[0:1] }}
{{ missing() }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ 'a' + missing }}
{{ -missing }}
{{ missing < 1 }}
{{ missing % 2 }}
{{ missing|int }}
{{ missing|float }}
{{ missing|abs }}
{{ missing|dictsort }}
{{ missing|round }}
{{ d.zz.y }}
{{ d.zz() }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ 'a' - 'b' }}
{{ [] + () }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ [1, 'a']|sort }}
{{ [none, 1]|min }}
{{ d < d }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ 'a'.nope() }}
{{ l.append(1) }}
{{ l.pop() }}
{{ d.update({}) }}
{{ d.clear() }}
{{ d.pop('b') }}
{{ d.setdefault('x', 1) }}
{{ l.sort() }}
{{ s.__class__.__mro__ }}
{{ s.__class__() }}
{{ 5() }}
{{ s() }}
{{ none.x.y }}
{{ none() }}
{{ {[]: 1} }}
{{ {{}: 1} }}
{{ d[1:2] }}
{{ i[1:2] }}
{{ s['x':] }}
{{ 'abc'[::0] }}
{{ l|nosuchfilter }}
{{ l is nosuchtest }}
{{ 'a' is filter(1) }}
{% if t %}{{ s|nosuchfilter }}{% endif %}
{% for x in l %}{% if t %}{% for y in l %}{{ y|nosuch }}{% endfor %}{% endif %}{% endfor %}
{{ l|map('nosuch')|list }}
{{ l|select('nosuch')|list }}
{{ l|map|list }}
{{ nested|selectattr|list }}
{{ l|length(1) }}
{{ 5|length }}
{{ (l|map('string'))|length }}
{{ none|length }}
{{ 5|list }}
{{ 5|first }}
{{ (l|map('string'))|last }}
{{ 5|join(',') }}
{{ 5|sum }}
{{ ['a']|sum }}
{{ 'x'|abs }}
{{ 'x'|round }}
{{ 1.5|round(1, 'up') }}
{{ 5|items|list }}
{{ 5|dictsort }}
{{ d|dictsort(by='x') }}
{{ missing|tojson }}
{{ range(3)|tojson }}
{{ namespace()|tojson }}
{{ (l|map('string'))|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}
{{ d.items()|tojson }}
{{ 5|indent }}
{{ 'abc'|truncate(2) }}
{{ 'abc'|center('x') }}
{{ 'a b'|wordwrap(0) }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ '%z' % 1 }}
{{ '%(x)s' % {} }}
{{ '%' % 1 }}
{{ '{}'.format() }}
{{ '{x}'.format(y=1) }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ '{0} {}'.format(1, 2) }}
{{ '{:d}'.format('a') }}
{{ '{:q}'.format(1) }}
{{ '{:s}'.format(1) }}
{{ '{:5}'.format([]) }}
{{ '{a.__class__.__init__.__globals__}'.format(a=s) }}
{{ 'a'.split('') }}
{{ 'a'.join([1]) }}
{{ 'a'.index('z') }}
{{ l.index(99) }}
{{ 'a'.center(5, 'xx') }}
{{ 'a'.startswith(1) }}
{{ 'a'.startswith(['a']) }}
{{ 'a'.replace('a') }}
{{ 'a'.strip(1) }}
{{ 'a'.upper(1) }}
{{ range('x') }}
{{ range(1, 2, 0) }}
{{ range() }}
{{ range(1000000) }}
{{ range(1.5) }}
{{ dict(1) }}
{{ dict([1]) }}
{{ cycler() }}
{{ namespace(1) }}
{% set s.x = 1 %}
{% set nope.x = 1 %}
{% set a, b = 1 %}
{% set a, b = [1] %}
{% set a, b = [1, 2, 3] %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in l %}{{ loop(l) }}{% endfor %}
{% for x in l %}{{ loop.cycle() }}{% endfor %}
{% for x in l %}{{ loop.nope.x }}{% endfor %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}
{% macro m(caller) %}{{ caller() }}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{{ f(1, **{1: 2}) }}
{{ dict(*5) }}
{{ dict(**5) }}
{{ dict(a=1, a=2) }}
{{ dict(a=1, **{'a': 2}) }}
{{ (1 if fa).x }}
{% if %}{% endif %}
{% if t %}
{% for x in l %}
{% for in l %}{% endfor %}
{% for x l %}{% endfor %}
{% for x.y in l %}{% endfor %}
{% endif %}
{% endfor %}
{% else %}
{% if t %}{% endfor %}
{% nosuchtag %}
{% %}
{% set %}
{% set x %}
{% set x = %}
{% set 1 = 2 %}
{% set true = 2 %}
{% set x.y.z = 1 %}
{% set x[0] = 1 %}
{% break %}
{% continue %}
{% if t %}{% break %}{% endif %}
{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in l %}{% else %}{% break %}{% endfor %}
{{ }}
{{ 1 2 }}
{{ a b }}
{{ 1 + }}
{{ * 1 }}
{{ (1 }}
{{ [1, 2 }}
{{ {'a' 1} }}
{{ {'a': } }}
{{ a. }}
{{ a.'x' }}
{{ a[] . }}
{{ a[ }}
{{ 'abc }}
{{ "abc }}
{{ a | }}
{{ a is }}
{{ a is not }}
{{ a is string is string }}
{{ f(a=1, 2) }}
{{ f(**a, *b) }}
{{ f(*a, *b) }}
{{ f(,) }}
{{ ) }}
{{ (] }}
{{ a ? b }}
{{ a $ b }}
{{ a ! b }}
{{ not }}
{{ a and }}
{{ a if }}
{{ a if b else }}
{{ 1__0 }}
{{ 0123 }}
{{ '\\x4' }}
{{ '\\u12' }}
{{ '\\N{nope}' }}
{{ s
{% if t
{# open
{% raw %}open
{{ s }
{{ s %}
{% if t }}{% endif %}
{% call f %}{% endcall %}
{% call 5 %}{% endcall %}
{% filter %}x{% endfilter %}
{% filter nosuch %}x{% endfilter %}
{% with a %}{% endwith %}
{% with a = 1 b = 2 %}{% endwith %}
{% include 'x' %}
{% import 'x' as y %}
{% from 'x' import y %}
{% extends 'x' %}
{% do 1 %}
{% trans %}x{% endtrans %}
{% generation %}x
{% macro %}{% endmacro %}
{% macro m %}{% endmacro %}
{% endmacro %}
{% block %}{% endblock %}
{{ strftime_now() }}
{{ strftime_now(5) }}
{{ raise_exception() }}
{{ joiner(1, 2) }}
{{ x|default(y.z) }}
{{ [1]|map('int', 1, 2, 3)|list }}
{{ 'a'|replace('a') }}
{{ d|xmlattr(1, 2) }}
{{ {'a b': 1}|xmlattr }}
{{ 1|attr }}
{{ [[]]|unique|list }}
{{ nested|groupby }}
{{ [1, 'a']|max }}
{% filter length %}abc{% endfilter %}
{{ l|batch }}
{{ l|slice(0)|list }}
{{ l|slice('x')|list }}
{{ l[0].x.y }}
{{ 'abc'|list|join.x.y }}
"""
for line in ERRORS.strip().splitlines():
    add(line)


def main() -> None:
    used = {}
    out = []
    n_errors = 0
    for template, extra in CASES:
        context = {**G, **extra}
        try:
            result = {"expected": render(template, context)}
            result["expected"].encode()
        except UnicodeEncodeError:
            continue
        except Exception as e:
            n_errors += 1
            result = {"error": True, "message": f"{type(e).__name__}: {e}"[:200]}
        if template in used:
            continue
        used[template] = True
        # The shared context is the first line's; only what differs is repeated.
        out.append({"template": template, **({"context": extra} if extra else {}), **result})
    with open(sys.argv[1], "w") as file:
        file.write(json.dumps({"context": G}, ensure_ascii=False) + "\n")
        for case in out:
            file.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(f"{len(out)} cases, {n_errors} of them errors")
    for case in out:
        expected_error = case["template"] in ERRORS.splitlines()
        if expected_error != case.get("error", False):
            print("unplanned:", case["template"][:150], "->", case.get("message", case.get("expected"))[:200])


main()
