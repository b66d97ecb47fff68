"""What must be refused."""

from jinja_cases import add

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
