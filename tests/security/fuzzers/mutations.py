"""Seeded changes to honest bytes and values: what a disk that rots, a hand that edits, or an attacker makes of them."""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

Path = tuple[Any, ...]


def nested(levels: int) -> Any:
    """Return a list in a list, and so on."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


STRANGE: tuple[Callable[[Random], Any], ...] = (
    lambda _dice: None,
    lambda dice: dice.choice((True, False)),
    lambda dice: dice.choice((-1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63) - 1)),
    lambda dice: dice.choice((-0.5, 1.0, 1e308, float("nan"), float("inf"), float("-inf"))),
    lambda dice: dice.choice(
        ("", "x" * 5000, "../../../fuzz", "a/b", ".hidden", "a\nb", "\x1b[2J", "1", "NaN", "\u202e")
    ),
    lambda dice: dice.choice(("\0", "a\0b", "\U0001f525")),
    lambda dice: str(UUID(int=dice.getrandbits(128))),
    lambda dice: dice.choice(([], {}, [[]], {"": None}, [None], [1, 2, 3])),
    lambda dice: nested(dice.choice((5, 50))),
)


def strange(dice: Random) -> Any:
    """Return a value that stands where another one should."""
    return dice.choice(STRANGE)(dice)


def places(value: Any, at: Path = ()) -> list[Path]:
    """Return the paths to all parts of a value of JSON types, its own, which is empty, first."""
    found = [at]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*at, index))
    return found


def changed(dice: Random, value: Any) -> Any:
    """Return a value of JSON types with one to three parts replaced, removed, doubled or exchanged."""
    made = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        made = _once(dice, made)
    return made


def _once(dice: Random, value: Any) -> Any:
    path = dice.choice(places(value))
    if not path:
        return strange(dice) if dice.random() < 0.2 else value
    parent = value
    for part in path[:-1]:
        parent = parent[part]
    last = path[-1]
    act = dice.randrange(6)
    if act == 0:
        del parent[last]
    elif act == 1 and isinstance(parent, list):
        parent.insert(dice.randrange(len(parent) + 1), copy.deepcopy(parent[last]))
    elif act == 1:
        parent[dice.choice(("more", "", "-1", "1e3", "01", "__class__"))] = strange(dice)
    elif act == 2:
        other = dice.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[last], parent[other] = parent[other], parent[last]
    elif act == 3 and type(parent[last]) is int:
        parent[last] += dice.choice((-1, 1, 2**20, 2**32))
    else:
        parent[last] = strange(dice)
    return value


def spoilt(dice: Random, data: bytes) -> bytes:
    """Return bytes that were cut, flipped, overwritten, doubled, or are others altogether."""
    made = bytearray(data)
    at = dice.randrange(len(made) + 1)
    act = dice.randrange(9)
    if act == 0:
        del made[at:]
    elif act == 1:
        for _ in range(dice.choice((1, 1, 2, 8))):
            if made:
                made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    elif act == 2:
        made[at : at + dice.choice((1, 4, 64))] = dice.randbytes(dice.choice((0, 1, 4, 64)))
    elif act == 3:
        made[at:at] = made[at : at + 64]
    elif act == 4:
        return dice.choice((b"", b"\0" * 64, b"null", b"[]", b"7", b'"x"', b"\xff\xfe{}", b"{}", b"NaN"))
    elif act == 5:
        return dice.choice((b"[", b'{"a":')) * dice.choice((10, 100_000))
    elif act == 6:
        made[at:at] = b"9" * dice.choice((20, 5000))
    elif act == 7:
        made[at:at] = dice.choice((b"\0", b"\xc3", b"-", b"e999", b"Infinity", b"//"))
    else:
        return dice.randbytes(dice.choice((1, 8, 200)))
    return bytes(made)


def spoilt_json(dice: Random, data: bytes) -> bytes:
    """Return the bytes of a JSON document that was changed as a value, mostly, or as bytes."""
    if dice.random() < 0.3:
        return spoilt(dice, data)
    return json.dumps(changed(dice, json.loads(data))).encode()
