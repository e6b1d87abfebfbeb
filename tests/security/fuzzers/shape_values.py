"""Right values of a declared shape (pondstack.domain.shape), drawn by a seeded generator."""

from functools import singledispatch
from random import Random
from typing import Any
from uuid import UUID

from pondstack.domain import shape as shapes


@singledispatch
def drawn(shape: shapes.Shape, dice: Random) -> Any:
    """Return a value of the shape. A rule between fields is not looked at."""
    raise TypeError(f"nobody draws a {type(shape).__name__} with {dice}")


@drawn.register
def _text(shape: shapes.Text, dice: Random) -> str:
    some = dice.choice(("", "a", "host-1", "ü", str(UUID(int=dice.getrandbits(128)))))
    return some.ljust(shape.least, "x")[: shape.most]


@drawn.register
def _name(shape: shapes.Name, dice: Random) -> str:
    return "" if shape.empty and dice.random() < 0.2 else str(UUID(int=dice.getrandbits(128)))


@drawn.register
def _hex(shape: shapes.Hex, dice: Random) -> str:
    return dice.randbytes(min(16, shape.most_bytes)).hex()


@drawn.register
def _one_of(shape: shapes.OneOf, dice: Random) -> str:
    return dice.choice(shape.words)


@drawn.register
def _whole(shape: shapes.Whole, dice: Random) -> int:
    least, most = shape.least, shape.most
    return dice.choice((least, most, max(least, min(most, 1)), dice.randint(least, min(most, least + 100))))


@drawn.register
def _number(shape: shapes.Number, dice: Random) -> float:
    return dice.choice((shape.least, shape.most, max(shape.least, 0.5), max(shape.least, 7)))


@drawn.register
def _flag(_shape: shapes.Flag, dice: Random) -> bool:
    return dice.random() < 0.5


@drawn.register
def _nullable(shape: shapes.Nullable, dice: Random) -> Any:
    return None if dice.random() < 0.3 else drawn(shape.shape, dice)


@drawn.register
def _items(shape: shapes.Items, dice: Random) -> list[Any]:
    return [drawn(shape.item, dice) for _ in range(max(shape.least, dice.randrange(3)))]


@drawn.register
def _row(shape: shapes.Row, dice: Random) -> list[Any]:
    return [drawn(item, dice) for item in shape.items]


@drawn.register
def _index(shape: shapes.Index, dice: Random) -> str:
    return str(dice.choice((0, shape.most, dice.randint(0, shape.most))))


@drawn.register
def _table(shape: shapes.Table, dice: Random) -> dict[str, Any]:
    return {drawn(shape.key, dice): drawn(shape.value, dice) for _ in range(dice.randrange(3))}


@drawn.register
def _fields(shape: shapes.Fields, dice: Random) -> dict[str, Any]:
    found = {name: drawn(item, dice) for name, item in shape.required.items()}
    return found | {name: drawn(item, dice) for name, item in shape.optional.items() if dice.random() < 0.7}


@drawn.register
def _anything(_shape: shapes.Anything, dice: Random) -> Any:
    return dice.choice((None, True, 1, 0.5, "a", [1, "b"], {"a": {"b": [None]}}))
