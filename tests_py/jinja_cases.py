"""The templates that are compared with Python's jinja2: what they share, and the list that jinja_cases_*.py fill."""

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
