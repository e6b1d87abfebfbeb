"""Annotations as shapes: what a dataclass or a method declares is what it takes over the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from pondstack.domain import conform
from pondstack.domain.errors import BadRequest
from pondstack.domain.model import Extent
from pondstack.domain.shape import Whole


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Outer:
    number: int
    share: float
    inner: Inner
    extents: tuple[Extent, ...] = ()
    pair: tuple[str, int] = ("", 0)
    by_index: dict[int, bool] = field(default_factory=dict)
    colour: Colour | None = None
    more: Any = None
    few: int = field(default=0, metadata={conform.SHAPE: Whole(0, 3)})


GOOD: dict[str, Any] = {"number": 1, "share": 1, "inner": {"name": "a"}}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"extents": [{"start": 0, "count": 1}]},
        {"pair": ["a", 1]},
        {"by_index": {"7": True}},
        {"colour": None},
        {"colour": "a word of a newer sender"},
        {"a field of a newer sender": 5},
        {"inner": {"name": "a", "of a newer sender": 1}},
        {"more": [{"a": None}]},
    ],
)
def test_what_a_value_may_say(more: dict[str, Any]) -> None:
    conform.check_value(Outer, GOOD | more)


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"number": True}, "number"),
        ({"number": 2**63}, "number"),
        ({"share": float("nan")}, "share"),
        ({"inner": None}, "inner"),
        ({"inner": {"name": 1}}, "inner/name"),
        ({"extents": [{"start": 0, "count": 10**12}]}, "extents/0/count"),
        ({"extents": [{"start": -1, "count": 1}]}, "extents/0/start"),
        ({"pair": ["a"]}, "pair"),
        ({"by_index": {"x": True}}, "by_index"),
        ({"more": float("inf")}, "more"),
        ({"few": 4}, "few"),
    ],
)
def test_what_it_may_not(more: dict[str, Any], where: str) -> None:
    with pytest.raises(BadRequest, match=rf"Outer.*{where}.*one version"):
        conform.check_value(Outer, GOOD | more)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadRequest, match="lacks inner, share"):
        conform.check_value(Outer, {"number": 1})
    with pytest.raises(BadRequest, match="a list, not an object"):
        conform.check_value(Outer, [])


class Endpoint:
    @conform.checked
    def verb(
        self, _context: Any, *, names: Sequence[str], of: Mapping[str, int] | None = None, **more: Any
    ) -> Sequence[str]:
        return [*names, *(of or {}), *more]


def test_a_method_takes_what_it_declares() -> None:
    assert Endpoint().verb({}, names=["a"], of={"b": 1}, other=object()) == ["a", "b", "other"]
    for wrong in ({"names": "a"}, {"names": [1]}, {"names": ["a"], "of": {"b": "1"}}):
        with pytest.raises(BadRequest, match="verb: "):
            Endpoint().verb({}, **wrong)
    with pytest.raises(TypeError):
        Endpoint().verb({})


def test_what_cannot_cross_rpc_is_no_annotation_of_it() -> None:
    with pytest.raises(TypeError, match="does not cross"):
        conform.shape_of(set[str])
