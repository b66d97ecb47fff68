"""Writes data/pydantic_schemas.jsonl: the JSON schemas of ordinary pydantic models, as they are read and written.

Run it where pydantic 2 and email-validator are installed; the tests need neither.
"""

# ruff: noqa: UP007, UP045 (models are written in both ways)
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import typing
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field, RootModel, conint, conlist, constr
from typing_extensions import TypedDict

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = 1
    B = "b"
    C = 2.5


class Empty(BaseModel):
    pass


class Scalars(BaseModel):
    s: str
    i: int
    f: float
    b: bool
    n: None


class Defaults(BaseModel):
    s: str = "x"
    i: int = 3
    items: list[int] = [1, 2]


class Optionals(BaseModel):
    a: Optional[str] = None
    b: int | None
    c: Union[int, str, None] = None


class Bounds(BaseModel):
    a: int = Field(gt=0, le=100)
    b: float = Field(ge=-1.5, lt=1e6)
    c: int = Field(multiple_of=5)
    d: float = Field(multiple_of=0.5)
    e: int = Field(le=2**63)


class Strings(BaseModel):
    a: str = Field(min_length=1, max_length=10)
    b: constr(pattern=r"^[a-z]+\d{2,4}$")
    c: constr(strip_whitespace=True, to_lower=True)


class Lists(BaseModel):
    a: list[str]
    b: conlist(int, min_length=1, max_length=3)
    c: list[list[float]]
    d: list
    e: tuple[int, str]
    f: tuple[int, ...]
    g: tuple[()]


class Dicts(BaseModel):
    a: dict[str, int]
    b: dict[str, list[bool]]
    c: dict
    d: dict[Color, int]
    e: dict[constr(pattern="^x-"), str]
    f: dict[int, str]


class Enums(BaseModel):
    a: Color
    b: Level
    c: Mixed
    d: Literal["x", "y"]
    e: Literal[1, "one", None, True]
    f: Literal["only"]
    g: Color = Color.RED


class Dates(BaseModel):
    a: datetime.datetime
    b: datetime.date
    c: datetime.time
    d: datetime.timedelta
    e: pydantic.AwareDatetime
    f: pydantic.PastDate


class Network(BaseModel):
    a: pydantic.EmailStr
    b: pydantic.HttpUrl
    c: pydantic.AnyUrl
    d: ipaddress.IPv4Address
    e: ipaddress.IPv6Address
    f: pydantic.IPvAnyAddress
    g: ipaddress.IPv4Network
    h: pydantic.NameEmail
    i: pydantic.PostgresDsn
    j: ipaddress.IPv4Interface


class Identifiers(BaseModel):
    a: uuid.UUID
    b: pydantic.UUID4
    c: pydantic.UUID1
    d: pydantic.UUID7


class Secrets(BaseModel):
    a: pydantic.SecretStr
    b: pydantic.SecretBytes
    c: pydantic.Base64Str
    d: bytes


class Paths(BaseModel):
    a: pathlib.Path
    b: pydantic.FilePath
    c: pydantic.DirectoryPath
    d: pydantic.NewPath


class Decimals(BaseModel):
    a: decimal.Decimal
    b: decimal.Decimal = Field(max_digits=6, decimal_places=2)
    c: decimal.Decimal = Field(ge=0, le=100)
    d: pydantic.condecimal(gt=0, multiple_of=decimal.Decimal("0.01"))


class Numbers(BaseModel):
    a: pydantic.PositiveInt
    b: pydantic.NonNegativeFloat
    c: pydantic.NegativeInt
    d: pydantic.FiniteFloat
    e: pydantic.StrictInt
    f: conint(ge=0, multiple_of=3)
    g: pydantic.ByteSize
    h: complex


class Anything(BaseModel):
    a: Any
    b: object
    c: pydantic.JsonValue
    d: pydantic.Json[list[int]]
    e: pydantic.Json


class Inner(BaseModel):
    """What lies within."""

    x: int


class Nested(BaseModel):
    inner: Inner
    many: list[Inner]
    by_name: dict[str, Inner]
    maybe: Optional[Inner] = None


class Described(BaseModel):
    a: int = Field(title="A", description="the first", examples=[1, 2], deprecated=True)
    b: str = Field(alias="bee", json_schema_extra={"x-order": 2, "nullable": True, "example": "e", "readOnly": True})
    c: Inner = Field(description="beside a reference", json_schema_extra={"writeOnly": True})


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", title="A closed one")
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"a": 1}], "x-kind": {"deep": [1]}})
    a: int


class TypedExtra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: str


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Linked(BaseModel):
    value: str
    next: Optional["Linked"] = None


class Ping(BaseModel):
    pong: Optional["Pong"] = None


class Pong(BaseModel):
    ping: Ping


class Cat(BaseModel):
    kind: Literal["cat"]
    meows: int


class Dog(BaseModel):
    kind: Literal["dog", "hound"]
    barks: float


class CatByDefault(BaseModel):
    kind: Literal["cat"] = "cat"
    meows: int = 0


class DogByDefault(BaseModel):
    kind: Literal["dog"] = "dog"
    barks: float = 0


class Tagged(BaseModel):
    pet: Union[Cat, Dog] = Field(discriminator="kind")


class TaggedByDefault(BaseModel):
    pet: Annotated[Union[CatByDefault, DogByDefault], Field(discriminator="kind")]


class TaggedList(BaseModel):
    pets: list[Annotated[Union[Cat, Dog], Field(discriminator="kind")]]
    first: Optional[Annotated[Union[Cat, Dog], Field(discriminator="kind")]] = None


class Lizard(BaseModel):
    kind: Literal["lizard"]
    tail: bool


class NestedTags(BaseModel):
    pet: Annotated[Union[Annotated[Union[Cat, Dog], Field(discriminator="kind")], Lizard], Field(discriminator="kind")]


class EnumTagged(BaseModel):
    class A(BaseModel):
        t: Literal[Color.RED]

    class B(BaseModel):
        t: Literal[Color.BLUE]

    one: Annotated[Union[A, B], Field(discriminator="t")]


class Untagged(BaseModel):
    pet: Union[Cat, Inner]
    value: Union[int, list[int], dict[str, int]]


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclasses.dataclass
class Item:
    name: str
    count: int = 1


class Containers(BaseModel):
    point: Point
    movie: Movie
    item: Item


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int


class Names(RootModel[list[str]]):
    pass


class Table(RootModel[dict[str, Inner]]):
    pass


class WithRoots(BaseModel):
    names: Names
    table: Table


class Computed(BaseModel):
    a: int

    @pydantic.computed_field
    @property
    def double(self) -> int:
        return 2 * self.a


class Person(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0, le=150)]
    email: Optional[pydantic.EmailStr] = None


class Step(BaseModel):
    explanation: str
    output: str


class MathAnswer(BaseModel):
    steps: list[Step]
    final_answer: str


class CalendarEvent(BaseModel):
    name: str
    date: datetime.date
    participants: list[str]


class Address(BaseModel):
    street: str
    zip: str = Field(pattern=r"^\d{5}(?:-\d{4})?$")
    country: Literal["CH", "DE", "US"]


class Order(BaseModel):
    id: uuid.UUID
    lines: list[Item] = Field(min_length=1)
    ship_to: Address
    bill_to: Optional[Address] = None
    total: decimal.Decimal
    placed: datetime.datetime
    notes: dict[str, str] = Field(default_factory=dict)


class Column(enum.Enum):
    id = "id"
    status = "status"


class Operator(enum.Enum):
    eq = "="
    gt = ">"
    le = "<="


class Condition(BaseModel):
    column: str
    operator: Operator
    value: Union[str, int, "Condition"]


class Query(BaseModel):
    table_name: str
    columns: list[Column]
    conditions: list[Condition]
    order_by: Literal["asc", "desc"]


class Element(BaseModel):
    type: Literal["div", "button", "header"]
    label: str
    children: list["Element"]
    attributes: list[dict[str, str]]


class Contact(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: "c_" + name, populate_by_name=True)
    first_name: str
    phone: constr(pattern=r"^\+?[1-9]\d{1,14}$")


class Weather(BaseModel):
    city: str = Field(..., description="City name", examples=["Bern"])
    unit: Literal["celsius", "fahrenheit"] = "celsius"
    days: int = Field(default=1, ge=1, le=14)


class Slots(BaseModel):
    a: Annotated[list[Annotated[int, Field(ge=0, le=9)]], Field(min_length=2, max_length=2)]
    b: Annotated[str, pydantic.StringConstraints(min_length=2, pattern="^[A-Z]")]


class Deep(BaseModel):
    a: dict[str, list[dict[str, tuple[int, Optional[Inner]]]]]


class Money(BaseModel):
    amount: Annotated[float, Field(ge=0, multiple_of=0.05)]
    currency: Annotated[str, Field(min_length=3, max_length=3)]


class Instruction(BaseModel):
    pattern: typing.Pattern
    module: pydantic.ImportString


class Switch(BaseModel):
    on: Literal[True]
    off: Literal[False]
    either: bool = Field(strict=True)


class Sets(BaseModel):
    a: set[int]
    b: frozenset[str] = frozenset()


class Ids(BaseModel):
    big: Annotated[int, Field(ge=2**63, le=2**64)]
    exact: Literal[12345678901234567890]


MODELS = {
    model.__name__: model
    for model in [
        Empty,
        Scalars,
        Defaults,
        Optionals,
        Bounds,
        Strings,
        Lists,
        Dicts,
        Enums,
        Dates,
        Network,
        Identifiers,
    ]
    + [Secrets, Paths, Decimals, Numbers, Anything, Inner, Nested, Described, Closed, Open, TypedExtra, Tree, Linked]
    + [Ping, Pong, Cat, Tagged, TaggedByDefault, TaggedList, NestedTags, EnumTagged, Untagged, Containers, Names, Table]
    + [WithRoots, Computed, Person, MathAnswer, CalendarEvent, Address, Order, Query, Element, Contact, Weather, Slots]
    + [Deep, Money, Instruction, Switch, Ids, Sets]
}
MODELS |= {"Page[int]": Page[int], "Page[Inner]": Page[Inner], "Movie": Movie, "Item": Item, "Point": Point}
MODELS |= {"list[Tree]": list[Tree], "Union": Union[Inner, int], "Optional": Optional[Inner]}


def main():
    lines = [json.dumps({"pydantic": pydantic.VERSION})]
    for name, model in MODELS.items():
        read, written = (pydantic.TypeAdapter(model).json_schema(mode=mode) for mode in ("validation", "serialization"))
        lines.append(json.dumps({"name": name, "schema": read}))
        if written != read:
            lines.append(json.dumps({"name": name + ", as written", "schema": written}))
    path = pathlib.Path(__file__).parent / "data" / "pydantic_schemas.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(len(lines) - 1, "schemas of", len(MODELS), "models")


if __name__ == "__main__":
    main()
