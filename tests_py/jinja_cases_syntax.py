"""White space, literals and operators."""

from jinja_cases import add, expressions

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
