"""Methods of strings, and filters."""

from jinja_cases import expressions

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
