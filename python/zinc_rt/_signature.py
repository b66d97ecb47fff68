"""Signatures of the native calls, and checks of what they are given: both come from the stubs, _core.pyi.

A call with a wrong argument raises InvalidType or InvalidArgument, which name the parameter, the value and what is
allowed; the native module is not asked.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from . import _check, errors

# Maps each TypedDict of the stub to the call whose signature has the same names, with defaults.
WHOLE = {"_Parameters": ("Session", "generate"), "_ModelOptions": ("Engine", "__init__")}
F = TypeVar("F", bound=Callable)
_INTEGER = re.compile(rf"\b({'|'.join(_check.INTEGERS)})\b")
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _default(node: ast.expr | None) -> Any:
    return inspect.Parameter.empty if node is None else ast.literal_eval(node)


def _annotation(node: ast.expr | None) -> Any:
    return inspect.Parameter.empty if node is None else ast.unparse(node)


class Stub:
    """The functions of a stub file, by class (or None) and name."""

    def __init__(self, source: str):
        tree = ast.parse(source)
        self._functions: dict[tuple[str | None, str], list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self._typed_dicts: dict[str, list[str]] = {}
        self._add(None, tree.body)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._add(node.name, node.body)
                if any(getattr(base, "id", "") == "TypedDict" for base in node.bases):
                    fields = [each.target.id for each in node.body if isinstance(each, ast.AnnAssign)]
                    self._typed_dicts[node.name] = fields

    def _add(self, owner: str | None, body: list[ast.stmt]) -> None:
        for node in body:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and not any(getattr(each, "id", "") == "property" for each in node.decorator_list):
                self._functions.setdefault((owner, node.name), []).append(node)

    def names(self) -> Iterator[tuple[str | None, str]]:
        return iter(self._functions)

    @functools.cache  # noqa: B019 (there is one stub)
    def signature(self, owner: str | None, name: str) -> inspect.Signature:
        """Of overloads, which have the same parameters, the types of all."""
        nodes = self._functions[owner, name]
        signature = self._signature(nodes[0])
        for node in nodes[1:]:
            other = self._signature(node).parameters
            joined = [
                p if p.annotation == other[p.name].annotation
                else p.replace(annotation=f"{p.annotation} | {other[p.name].annotation}")
                for p in signature.parameters.values()
            ]  # fmt: skip
            signature = signature.replace(parameters=joined)
        return signature

    def _signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> inspect.Signature:
        a = node.args
        positional = [*a.posonlyargs, *a.args]
        defaults = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)

        def parameter(arg: ast.arg, kind, default: ast.expr | None = None) -> inspect.Parameter:
            return inspect.Parameter(arg.arg, kind, default=_default(default), annotation=_annotation(arg.annotation))

        ordinary = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [parameter(arg, ordinary, default) for arg, default in zip(positional, defaults, strict=True)]
        if a.vararg:
            parameters.append(parameter(a.vararg, inspect.Parameter.VAR_POSITIONAL))
        parameters += [parameter(arg, KEYWORD, value) for arg, value in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        if a.kwarg:
            parameters += self.expanded(parameter(a.kwarg, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(parameters, return_annotation=_annotation(node.returns))

    def expanded(self, parameter: inspect.Parameter) -> list[inspect.Parameter]:
        """Of **parameters: Unpack[_Parameters] the parameters one by one."""
        typed_dict = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
        if typed_dict not in WHOLE:
            return [parameter]
        whole = self.signature(*WHOLE[typed_dict]).parameters
        return [whole[name] for name in self._typed_dicts[typed_dict]]


@functools.cache
def stub() -> Stub:
    return Stub(pathlib.Path(__file__).with_name("_core.pyi").read_text(encoding="utf-8"))


def _readable(signature: inspect.Signature) -> inspect.Signature:
    """With annotations as people read them."""

    def plain(annotation: Any) -> Any:
        return _INTEGER.sub("int", annotation) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=plain(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=plain(signature.return_annotation))


def _unknown(place: str, name: str, allowed: list[str]) -> errors.InvalidType:
    near = difflib.get_close_matches(name, allowed, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(allowed) or 'none'}"
    return _wrong(place, name, f"is no parameter; {hint}")


def _wrong(place: str, name: str, words: str) -> errors.InvalidType:
    error = errors.InvalidType(f"[{place}] {name} {words}")
    error.field = name
    return error


class _Checks:
    """What each parameter of a call may be."""

    def __init__(self, signature: inspect.Signature, place: str):
        owner = place.partition(".")[0]
        parameters = list(signature.parameters.values())
        self.place = place
        self.kinds = {
            p.name: _check.alternatives(p.annotation)
            for p in parameters
            if isinstance(p.annotation, str) and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        }
        if "self" in signature.parameters:
            self.kinds["self"] = _check.alternatives(owner)
        self.positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        empty = inspect.Parameter.empty
        self.required = [p.name for p in parameters if p.name in self.names and p.default is empty]
        self.takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.takes_any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        place = self.place
        if len(args) > len(self.positional) and not self.takes_any_number:
            what = f"{len(args)} arguments are given by position, {len(self.positional)} allowed"
            raise errors.InvalidType(f"[{place}] {what}; name the others")
        given = dict(zip(self.positional, args, strict=False))
        for name in kwargs:
            if name in given:
                raise _wrong(place, name, "is given twice, by position and by name")
            if name not in self.names and not self.takes_any_name:
                raise _unknown(place, name, [each for each in self.names if each != "self"])
        given |= kwargs
        for name in self.required:
            if name not in given:
                raise _wrong(place, name, f"is missing; {_check.words(self.kinds[name])} is wanted")
        for name, value in given.items():
            if (kinds := self.kinds.get(name)) and (found := _check.fault(name, value, kinds)):
                error = found[0](f"[{place}] {found[1]}")
                error.field = name
                raise error


def checked(call: F, signature: inspect.Signature, place: str) -> F:
    """The call with a signature that can be read, whose arguments are checked before it is made."""
    check = _Checks(signature, place)

    if inspect.iscoroutinefunction(call):

        async def wrapper(*args, **kwargs):
            check(args, kwargs)
            return await call(*args, **kwargs)
    else:

        def wrapper(*args, **kwargs):
            check(args, kwargs)
            return call(*args, **kwargs)

    wrapper.__name__ = call.__name__
    wrapper.__qualname__ = f"{place}.__init__" if call.__name__ == "__init__" else place
    wrapper.__doc__ = call.__doc__
    wrapper.__module__ = "zinc_rt"
    wrapper.__signature__ = _readable(signature)
    return wrapper


def checks_arguments(call: F) -> F:
    """checked() for a function of the package, by its own annotations (texts, with `from __future__`)."""
    signature = inspect.signature(call)
    parameters = [each for p in signature.parameters.values() for each in stub().expanded(p)]
    place = call.__qualname__.removesuffix(".__init__")
    return checked(call, signature.replace(parameters=parameters), place)


def install(classes: list[type]) -> None:
    """Wraps the calls of the native classes that the stub names."""
    by_name = {each.__name__: each for each in classes}
    for owner, name in stub().names():
        if owner in by_name and (name == "__init__" or not name.startswith("_")):
            kind, call = by_name[owner], getattr(by_name[owner], name)
            place = owner if name == "__init__" else f"{owner}.{name}"
            signature = stub().signature(owner, name)
            setattr(kind, name, checked(call, signature, place))
