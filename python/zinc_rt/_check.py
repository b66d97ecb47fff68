"""Whether a value is what an annotation asks for, and the words if not. Annotations are texts, as stubs have them."""

from __future__ import annotations

import ast
import functools
import operator
import os
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import errors

# Maps the names of integer annotations to the least and the largest value of the engine's type.
INTEGERS = {
    "UInt32": (0, 2**32 - 1),
    "UInt64": (0, 2**64 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "TokenId": (-(2**31), 2**31 - 1),
}
Fault = tuple[type[errors.InvalidArgument], str]  # the exception's class and message


def shown(value: object) -> str:
    """A value for a message: its type and a short form."""
    return "None" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"


@dataclass(frozen=True)
class Kind:
    """One alternative of an annotation."""

    words: str  # the expected type in words, such as "an int"
    accepts: Callable[[object], bool]  # checks the outer type only
    inner: Callable[[str, object], Fault | None] = lambda name, value: None  # REQUIRES: accepted
    elements: list[Kind] = field(default_factory=list)  # the kinds of a list's elements


def is_int(value: object) -> bool:
    return isinstance(value, int) or (hasattr(type(value), "__index__") and getattr(value, "ndim", 0) == 0)


def _is_number(value: object) -> bool:
    is_like = hasattr(type(value), "__float__") and getattr(value, "ndim", 0) == 0
    return isinstance(value, int | float) or is_like


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


def is_sequence(value: object) -> bool:
    is_list = hasattr(type(value), "__len__") and hasattr(type(value), "__getitem__")
    return is_list and not isinstance(value, str | bytes | bytearray | Mapping) and getattr(value, "ndim", 1) > 0


def _in_range(low: int, high: int):
    def inner(name, value):
        if low <= operator.index(value) <= high:
            return None
        return errors.InvalidArgument, f"{name} is {reprlib.repr(operator.index(value))}, {low} to {high} allowed"

    return inner


def _finite_width(name, value):
    try:
        float(value)
    except OverflowError:
        return errors.InvalidArgument, f"{name} is {reprlib.repr(value)}, numbers up to 1.8e308 are allowed"
    return None


def _unicode(name, value):
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return errors.InvalidArgument, f"{name} has half a surrogate pair at {error.start}; Unicode text is wanted"
    return None


def _integer(name: str) -> Kind:
    low, high = INTEGERS[name]
    return Kind(f"an int from {low} to {high}", is_int, _in_range(low, high))


def _sequence(element: list[Kind]) -> Kind:
    element = _joined(element)
    low, high = INTEGERS["TokenId"]
    is_ids = any(kind is KINDS["TokenId"] for kind in element)

    def inner(name, value):
        # A list of token ids is long, so this path must be fast.
        if is_ids and set(map(type, value)) == {int} and low <= min(value) and max(value) <= high:
            return None
        for index, each in enumerate(value):
            if found := fault(f"{name}[{index}]", each, element):
                return found
        return None

    return Kind(f"a list (each {words(element)})", is_sequence, inner, element)


def _joined(kinds: list[Kind]) -> list[Kind]:
    """Several lists become one of all their elements, so that the element that is wrong is the one that is named."""
    lists = [kind for kind in kinds if kind.elements]
    if len(lists) < 2:
        return kinds
    joined = _sequence([each for kind in lists for each in kind.elements])
    return [kind for kind in kinds if not kind.elements] + [joined]


def _mapping(key: list[Kind], element: list[Kind]) -> Kind:
    def inner(name, value):
        for k, v in value.items():
            if found := fault(f"a key of {name}", k, key) or fault(f"{name}[{k!r}]", v, element):
                return found
        return None

    return Kind("a dict", lambda value: isinstance(value, Mapping), inner)


KINDS = {
    **{name: _integer(name) for name in INTEGERS},
    "int": Kind("an int", is_int),
    "float": Kind("a number", _is_number, _finite_width),
    "bool": Kind("True or False", _is_bool),
    "str": Kind("a str", lambda value: isinstance(value, str), _unicode),
    "None": Kind("None", lambda value: value is None),
    "PathLike": Kind("a path", lambda value: isinstance(value, os.PathLike)),
    "LogitsProcessor": Kind("a callable", callable),
    "Callable": Kind("a callable", callable),
    "Any": Kind("anything", lambda value: True),
    "object": Kind("anything", lambda value: True),
}


def _class(name: str) -> Kind:
    article = "an" if name[0] in "AEIOU" else "a"
    return Kind(f"{article} {name}", lambda value: any(each.__name__ == name for each in type(value).__mro__))


def _alternatives(node: ast.expr) -> list[Kind]:
    if isinstance(node, ast.BinOp):
        return _alternatives(node.left) + _alternatives(node.right)
    if isinstance(node, ast.Constant):
        return [KINDS["None"]] if node.value is None else _alternatives(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.Attribute):
        return [_class(node.attr)]
    if isinstance(node, ast.Name):
        return [KINDS.get(node.id) or _class(node.id)]
    name = node.value.id
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("Sequence", "list", "tuple"):
        return [_sequence(_alternatives(parts[0]))]
    if name == "Literal":  # the engine checks which texts are allowed
        return [KINDS["str"]]
    if name in ("dict", "Mapping"):
        return [_mapping(*(_alternatives(part) for part in parts))]
    return [KINDS.get(name) or _class(name)]


@functools.cache
def alternatives(annotation: str) -> list[Kind]:
    """What an annotation allows."""
    return _joined(_alternatives(ast.parse(annotation, mode="eval").body))


def words(kinds: list[Kind]) -> str:
    texts = list(dict.fromkeys(kind.words for kind in kinds))
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]


def fault(name: str, value: object, kinds: list[Kind]) -> Fault | None:
    """What is wrong with the value of a parameter; None: nothing."""
    found = None
    for kind in kinds:
        if kind.accepts(value):
            found = kind.inner(name, value)
            if found is None:
                return None
    return found or (errors.InvalidType, f"{name} is {shown(value)}; {words(kinds)} is wanted")
