"""Declared shapes: what is in one, what is not, and that an error says where in a few words."""

from random import Random
from typing import Any

import pytest

from pondstack.domain.shape import (
    ANYTHING,
    MOST,
    Anything,
    Fields,
    Flag,
    Hex,
    Index,
    Items,
    Name,
    Nullable,
    Number,
    OneOf,
    Row,
    Shape,
    Table,
    Text,
    Whole,
)
from tests.security.fuzzers.mutations import STRANGE, nested
from tests.security.fuzzers.shape_values import drawn

NESTED = Fields({"a": Items(Fields({"b": Whole(1, 5)}, {"c": Nullable(Text(3))}))})
SHAPES: tuple[Shape, ...] = (
    Text(5, 1),
    Name(),
    Name(empty=True),
    Hex(8),
    OneOf(("on", "off")),
    Whole(-3, 3),
    Number(0.0, 9.5),
    Flag(),
    Nullable(Whole()),
    Items(Flag(), 1, 3),
    Row((Whole(), Text())),
    Index(99),
    Table(Index(), Flag()),
    NESTED,
    Fields({"a": Flag()}, others=True),
    ANYTHING,
)


def fits(shape: Shape, value: Any) -> bool:
    told = ""
    try:
        shape.check(value)
    except ValueError as error:
        told = str(error)
    assert len(told) < 400
    return not told


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_what_is_drawn_of_a_shape_is_of_it_and_nothing_strange_is_another_error(shape: Shape) -> None:
    dice = Random(1)
    for _ in range(100):
        assert fits(shape, drawn(shape, dice))
    for make in STRANGE:
        for _ in range(20):
            fits(shape, make(dice))


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Whole(), True),
        (Whole(), 1.0),
        (Whole(), "1"),
        (Whole(), MOST + 1),
        (Whole(), -1),
        (Whole(), 10**400),
        (Number(), float("nan")),
        (Number(), float("inf")),
        (Number(), False),
        (Number(), 10**400),
        (Flag(), 1),
        (Text(3), "four"),
        (Text(), "a\0"),
        (Name(), ""),
        (Name(), "../a"),
        (Name(), "a/b"),
        (Name(), ".hidden"),
        (Name(), "a\n"),
        (Hex(), "0"),
        (Hex(), "0G"),
        (Hex(2), "001122"),
        (OneOf(("a",)), ["a"]),
        (Index(), "01"),
        (Index(), "-1"),
        (Index(), "٣"),
        (Index(), 1),
        (Index(9), "10"),
        (Items(Flag(), most=1), [True, True]),
        (Items(Flag()), "ab"),
        (Row((Flag(),)), []),
        (Table(Name(), Flag()), {"": True}),
        (Table(Name(), Flag(), most=0), {"a": True}),
        (NESTED, {"a": [{"b": 1, "d": 2}]}),
        (NESTED, {}),
        (NESTED, []),
        (Anything(), {"a": [float("nan")]}),
        (Anything(), nested(40)),
        (Anything(), 2**63),
        (Anything(), {"a\0": 1}),
        (Anything(), object()),
    ],
)
def test_what_is_not_of_a_shape(shape: Shape, value: Any) -> None:
    assert not fits(shape, value)


def test_an_error_says_where() -> None:
    with pytest.raises(ValueError, match=r"^a/1/b is 9, not an integer from 1 to 5$"):
        NESTED.check({"a": [{"b": 1}, {"b": 9}]})
    with pytest.raises(ValueError, match=r"^it lacks a$"):
        NESTED.check({})


def test_a_rule_between_fields() -> None:
    def rule(found: Any) -> None:
        if found["a"] > found["b"]:
            raise ValueError("a is above b")

    shape = Fields({"a": Whole(), "b": Whole()}, rule=rule)
    assert fits(shape, {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="above"):
        shape.check({"a": 2, "b": 1})
