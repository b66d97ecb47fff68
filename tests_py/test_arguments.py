"""Every call of the package refuses what is no argument of it, in words that name the parameter and both values."""

import inspect
import math
import re

import pytest

import zinc_rt
from zinc_rt import errors

CLASSES = [
    zinc_rt.AsyncClient,
    zinc_rt.ChatTemplate,
    zinc_rt.Conversation,
    zinc_rt.Engine,
    zinc_rt.RequestHandle,
    zinc_rt.Session,
    zinc_rt.Stream,
    zinc_rt.Tenant,
    zinc_rt.TenantQuota,
    zinc_rt.Tokenizer,
]


def _calls():
    yield "validate", zinc_rt.validate
    for kind in CLASSES:
        for name, call in inspect.getmembers(kind, callable):
            if name == "__init__" or not name.startswith("_"):
                yield (kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}"), call


# Not of ours: what Python gives them. Classes without a constructor have Python's.
CALLS = {
    place: call
    for place, call in _calls()
    if place not in {"RequestHandle", "Session", "Stream", "Tenant"} and not place.endswith(".install")
}
PARAMETERS = [
    (place, parameter)
    for place, call in CALLS.items()
    for parameter in inspect.signature(call).parameters.values()
    if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    and parameter.name != "self"
    and not re.search(r"\b(Any|object)\b", str(parameter.annotation).replace("dict[str, Any]", "dict"))
]
INTEGERS = [(place, p) for place, p in PARAMETERS if re.fullmatch(r"int( \| None)?", str(p.annotation))]
# Lists of numbers. What embeds takes lists of texts and of lists as well, and says so in other words.
LISTS = [
    (place, p)
    for place, p in PARAMETERS
    if "Sequence[int]" in str(p.annotation) and "Sequence[str | Sequence" not in str(p.annotation)
]


class Wrong:
    """What no parameter takes."""

    def __repr__(self):
        return "wrong!"


@pytest.fixture
def subjects(tiny_engine):
    """An object for `self` of each class. No call reaches it."""
    tenant = tiny_engine.tenant("arguments")
    session = tenant.session()
    with session.stream("the", max_tokens=1) as stream:
        yield {
            "AsyncClient": zinc_rt.AsyncClient("http://localhost"),
            "ChatTemplate": zinc_rt.ChatTemplate("a"),
            "Conversation": tiny_engine.conversation(),
            "Engine": tiny_engine,
            "RequestHandle": session.submit("the", max_tokens=1, on_event=lambda event: None),
            "Session": session,
            "Stream": stream,
            "Tenant": tenant,
            "TenantQuota": zinc_rt.TenantQuota(),
            "Tokenizer": zinc_rt.Tokenizer.__new__(zinc_rt.Tokenizer),
        }


# Values for what a call cannot do without.
NEEDED = {
    "model": "none.gguf",
    "path": "none.gguf",
    "name": "n",
    "text": "t",
    "texts": ["t"],
    "query": "q",
    "documents": ["d"],
    "ids": [1],
    "token_ids": [1],
    "layer": 0,
    "messages": [],
    "prompt": "the",
    "on_event": print,
    "source": "a",
    "url": "http://localhost",
}


async def _awaited(call, arguments):
    return await call(**arguments)


def made(subjects, place, **arguments):
    """Makes a call, with its subject and what it needs besides."""
    call, subject = CALLS[place], subjects.get(place.partition(".")[0])
    parameters = inspect.signature(call).parameters
    needed = {"engine": subjects["Engine"], **NEEDED}
    for name, parameter in parameters.items():
        if name == "self":
            arguments["self"] = subject
        elif parameter.default is parameter.empty and name in needed:
            arguments.setdefault(name, needed[name])
    made = call(**arguments)
    if inspect.iscoroutine(made):
        with pytest.raises(StopIteration) as stopped:
            made.send(None)
        return stopped.value.value
    return made


def test_all_calls_are_met():
    assert len(CALLS) >= 40 and len(PARAMETERS) > 250 and len(INTEGERS) > 60 and len(LISTS) >= 10


@pytest.mark.parametrize("place, parameter", PARAMETERS, ids=lambda value: getattr(value, "name", value))
def test_a_wrong_type_is_named(subjects, place, parameter):
    with pytest.raises(errors.InvalidType) as raised:
        made(subjects, place, **{parameter.name: Wrong()})
    words = str(raised.value)
    assert words.startswith(f"[{place}] {parameter.name} is Wrong wrong!; ") and words.endswith(" is wanted")
    assert isinstance(raised.value, TypeError) and isinstance(raised.value, ValueError)


@pytest.mark.parametrize("place, parameter", INTEGERS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("value", [2**80, -(2**80)])
def test_a_number_out_of_range_is_named(subjects, place, parameter, value):
    with pytest.raises(errors.InvalidArgument, match=rf"\b{parameter.name} is {value}, -?\d+ to \d+ allowed"):
        made(subjects, place, **{parameter.name: value})


@pytest.mark.parametrize("place, parameter", LISTS, ids=lambda value: getattr(value, "name", value))
def test_a_wrong_element_is_named(subjects, place, parameter):
    # Numbers of devices are not signed, ids of tokens are.
    largest, least = (2**32, 0) if parameter.name == "devices" else (2**31, -(2**31))
    for value, words in ((Wrong(), "is Wrong wrong!; an int"), (largest, f"is {largest}, {least} to {largest - 1}")):
        with pytest.raises(errors.InvalidArgument, match=rf"{parameter.name}\[2\] {re.escape(words)}"):
            made(subjects, place, **{parameter.name: [1, 2, value]})


@pytest.mark.parametrize("place", CALLS)
def test_an_unknown_name_is_named(subjects, place):
    parameters = inspect.signature(CALLS[place]).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return  # it takes all names: variables of a template, fields of the server
    with pytest.raises(errors.InvalidType, match=rf"\[{place}\] bananas is no parameter; "):
        made(subjects, place, bananas=1)


@pytest.mark.parametrize("place", [place for place in CALLS if place not in ("Engine", "Tokenizer")])
def test_too_many_arguments_are_counted(subjects, place):
    if inspect.iscoroutinefunction(CALLS[place]) or place == "Conversation":
        return
    subject = [] if place == "validate" else [subjects[place.partition(".")[0]]]
    with pytest.raises(errors.InvalidType, match=r"given by position, \d+ allowed"):
        CALLS[place](*subject, *["a"] * 20)


def test_what_is_missing_is_named(subjects, tiny_engine):
    with pytest.raises(errors.InvalidType, match=r"\[Engine.tokenize\] text is missing; a str is wanted"):
        tiny_engine.tokenize()
    with pytest.raises(errors.InvalidType, match=r"\[Engine.tokenize\] text is given twice"):
        tiny_engine.tokenize("a", text="b")
    with pytest.raises(errors.InvalidType, match=r"\[Engine\] model is missing"):
        zinc_rt.Engine()
    with pytest.raises(errors.InvalidType, match=r"\[Engine.close\] self is str 'a'; an Engine is wanted"):
        zinc_rt.Engine.close("a")
    with pytest.raises(
        errors.InvalidType, match=r"\[Session.generate\] max_token is no parameter; did you mean max_tokens"
    ):
        subjects["Session"].generate("the", max_token=3)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"prompt": "a\ud800"}, "prompt has half a surrogate pair at 1"),
        ({"messages": [{"role": "user", "content": {1, 2}}]}, "messages cannot be written as JSON: Object of type set"),
        ({"messages": [{"role": "user", "content": math.nan}]}, "messages cannot be written as JSON"),
        ({"messages": ["hello"]}, r"messages\[0\] is str 'hello'; a dict is wanted"),
        ({"messages": [], "tools": [{"a": print}]}, "tools cannot be written as JSON"),
        ({"token_ids": "the"}, "token_ids is str 'the'; a list"),
        ({"token_ids": {1: 2}}, "token_ids is dict"),
        ({"prompt": "a", "stop": ["b", 3]}, r"stop\[1\] is int 3; a str is wanted"),
        ({"prompt": "a", "logit_bias": {"b": 1.0}}, "a key of logit_bias is str 'b'"),
        ({"prompt": "a", "logit_bias": {3: "c"}}, r"logit_bias\[3\] is str 'c'; a number is wanted"),
        ({"prompt": "a", "temperature": "hot"}, "temperature is str 'hot'; a number is wanted"),
        ({"prompt": "a", "temperature": 10**400}, "temperature is 1000.*, numbers up to"),
        ({"prompt": "a", "ignore_eos": 1}, "ignore_eos is int 1; True or False is wanted"),
        ({"prompt": "a", "max_tokens": 2.0}, "max_tokens is float 2.0; an int from 0 to 4294967295 is wanted"),
    ],
)
def test_values_that_look_right_are_looked_at(subjects, arguments, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        subjects["Session"].generate(**arguments)


def test_numbers_of_numpy_are_numbers(tiny_engine):
    np = pytest.importorskip("numpy")
    ids = np.array(tiny_engine.tokenize("the thin"))
    wanted = tiny_engine.generate(ids.tolist(), max_tokens=3)
    got = tiny_engine.generate(ids, max_tokens=np.int64(3), temperature=np.float32(0), ignore_eos=np.bool_(False))
    assert got.token_ids == wanted.token_ids
    with pytest.raises(errors.InvalidType, match="max_tokens is ndarray"):
        tiny_engine.generate(ids, max_tokens=np.array([3]))


def test_a_quota_takes_numbers_or_says_why_not(tiny_engine):
    quota = zinc_rt.TenantQuota()
    with pytest.raises(
        errors.InvalidType, match=r"\[TenantQuota\] max_slots is no field; there are: max_concurrent_slots"
    ):
        quota.max_slots = 3
    with pytest.raises(errors.InvalidType, match="weight is str 'heavy'"):
        quota.weight = "heavy"
    with pytest.raises(errors.InvalidArgument, match="max_kv_pages is -1, 0 to 4294967295 allowed"):
        quota.max_kv_pages = -1
    assert quota == zinc_rt.TenantQuota()
    with pytest.raises(errors.InvalidType, match="quota is dict"):
        tiny_engine.tenant("arguments").quota = {"weight": 2}
