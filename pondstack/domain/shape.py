"""What a value of JSON types has to be, declared: for files and messages that somebody else may have written. Pure.

`check` of each raises ValueError, which says where in the value what is wrong. Tests generate values from the same
declarations.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST = 2**63 - 1
"""The greatest integer of a database's column, and of most other programs."""
_DEEPEST = 30


class Shape(ABC):
    """A declared set of values."""

    @abstractmethod
    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError unless a value is of this shape; `where` is the path to it."""


def wrong(value: Any, where: str, wanted: str) -> ValueError:
    """Return the error for a value that is not what was wanted. Whatever it is, the text is short."""
    return ValueError(f"{where[:120] or 'it'} is {_shown(value)}, not {wanted}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:60])
    if type(value) is int and abs(value) > MOST:
        return "an integer of more than 64 bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Text(Shape):
    """Text of `least` to `most` characters, without a NUL."""

    most: int = 4096
    least: int = 0

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, str) or not self.least <= len(value) <= self.most or "\0" in value:
            raise wrong(value, where, f"a text of {self.least} to {self.most} characters")


@dataclass(frozen=True, slots=True)
class Name(Shape):
    """A text that can be a file's name: a UUID, an operation's id, the name of a host. `empty`: may be ''."""

    empty: bool = False
    most: int = 255

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if self.empty and value == "":
            return
        if (
            not isinstance(value, str)
            or not 0 < len(value) <= self.most
            or value[0] == "."
            or set("/\0\n") & set(value)
        ):
            raise wrong(value, where, "a name")


@dataclass(frozen=True, slots=True)
class Hex(Shape):
    """Bytes as pairs of hexadecimal digits."""

    most_bytes: int = 4096

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        good = isinstance(value, str) and not len(value) % 2 and len(value) <= 2 * self.most_bytes
        if not good or set(value) - set("0123456789abcdef"):
            raise ValueError(f"{where or 'it'} is not {self.most_bytes} bytes at most as hexadecimal digits")


@dataclass(frozen=True, slots=True)
class OneOf(Shape):
    """One of some words."""

    words: tuple[str, ...]

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, str) or value not in self.words:
            raise wrong(value, where, f"one of {', '.join(self.words)}")


@dataclass(frozen=True, slots=True)
class Whole(Shape):
    """An integer from `least` to `most`; true and false are none."""

    least: int = 0
    most: int = MOST

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if type(value) is not int or not self.least <= value <= self.most:
            raise wrong(value, where, f"an integer from {self.least} to {self.most}")


@dataclass(frozen=True, slots=True)
class Number(Shape):
    """A finite number from `least` to `most`; NaN and the infinities are none."""

    least: float = -1e18
    most: float = 1e18

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{where or 'it'} is {value}, which is no figure")
        if type(value) not in (int, float) or not self.least <= value <= self.most:
            raise wrong(value, where, f"a number from {self.least:g} to {self.most:g}")


@dataclass(frozen=True, slots=True)
class Flag(Shape):
    """True or false."""

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, bool):
            raise wrong(value, where, "true or false")


@dataclass(frozen=True, slots=True)
class Nullable(Shape):
    """Null, or something of a shape."""

    shape: Shape

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if value is not None:
            self.shape.check(value, where)


@dataclass(frozen=True, slots=True)
class Items(Shape):
    """A list of `least` to `most` values of one shape."""

    item: Shape
    least: int = 0
    most: int = 2**24

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, list | tuple) or not self.least <= len(value) <= self.most:
            raise wrong(value, where, f"a list of {self.least} to {self.most} items")
        for index, item in enumerate(value):
            self.item.check(item, f"{where}/{index}")


@dataclass(frozen=True, slots=True)
class Row(Shape):
    """A list of so many values, each of a shape of its own."""

    items: tuple[Shape, ...]

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, list | tuple) or len(value) != len(self.items):
            raise wrong(value, where, f"a list of {len(self.items)} items")
        for index, (shape, item) in enumerate(zip(self.items, value, strict=True)):
            shape.check(item, f"{where}/{index}")


@dataclass(frozen=True, slots=True)
class Index(Shape):
    """An integer as text, as a key of a JSON object is: as Python writes it, and no other way."""

    most: int = 2**31 - 1

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        good = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20
        if not good or str(int(value)) != value or int(value) > self.most:
            raise wrong(value, where, f"a number from 0 to {self.most} as text")


@dataclass(frozen=True, slots=True)
class Table(Shape):
    """An object with any keys of one shape, and values of another."""

    key: Shape
    value: Shape
    most: int = 2**24

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, Mapping) or len(value) > self.most:
            raise wrong(value, where, f"an object of at most {self.most} entries")
        for key, item in value.items():
            self.key.check(key, f"a key of {where or 'it'}")
            self.value.check(item, f"{where}/{key}")


@dataclass(frozen=True, slots=True)
class Fields(Shape):
    """An object with these fields. `optional`: may be missing; `others`: fields that are not named here may be there.

    `rule`: what must hold between the fields; it raises ValueError.
    """

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)
    others: bool = False
    rule: Callable[[Mapping[str, Any]], None] | None = None

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        if not isinstance(value, Mapping):
            raise wrong(value, where, "an object")
        if missing := sorted(self.required.keys() - value.keys()):
            raise ValueError(f"{where or 'it'} lacks {', '.join(missing)}")
        shapes = {**self.required, **self.optional}
        if not self.others and (unknown := sorted(map(str, value.keys() - shapes.keys()))):
            raise ValueError(f"{where or 'it'} has {', '.join(unknown)[:60]}, which nobody knows")
        for name, item in value.items():
            if name in shapes:
                shapes[name].check(item, f"{where}/{name}" if where else name)
            else:
                ANYTHING.check(item, f"{where}/{name}" if where else str(name))
        if self.rule is not None:
            self.rule(value)


@dataclass(frozen=True, slots=True)
class Anything(Shape):
    """Any value of JSON, but for numbers that are none, texts with a NUL, and what is nested deeply."""

    def check(self, value: Any, where: str = "") -> None:
        """Raise ValueError for anything else."""
        _plain(value, where, _DEEPEST)


ANYTHING = Anything()


def _plain(value: Any, where: str, levels: int) -> None:
    if levels < 0:
        raise ValueError(f"{where[:120] or 'it'} is nested deeper than {_DEEPEST} levels")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _plain(key, f"a key of {where or 'it'}", 0)
            _plain(item, f"{where}/{key}", levels - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _plain(item, f"{where}/{index}", levels - 1)
    elif isinstance(value, str):
        if "\0" in value:
            raise wrong(value, where, "a text without NUL")
    elif type(value) is int:
        if abs(value) > MOST:
            raise wrong(value, where, "an integer of 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise wrong(value, where, "a finite number")
    elif value is not None and not isinstance(value, bool):
        raise wrong(value, where, "a value of JSON")
