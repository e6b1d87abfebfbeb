"""Whether a value is of an annotated type, told in another way than pondstack.domain.conform does it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def conforms(value: Any, hint: Any) -> bool:
    """Return whether a value that came over the wire is of a type; integers are numbers, lists are tuples."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return _finite(value)
    if origin in (Union, UnionType):
        return any(conforms(value, item) for item in inner)
    if hint is NoneType:
        return value is None
    if is_dataclass(hint):
        return _is_dataclass(value, hint)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            (isinstance(key, str) or conforms(key, inner[0])) and conforms(item, inner[1])
            for key, item in value.items()
        )
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(conforms(*pair) for pair in zip(value, inner, strict=True))
    if origin in (tuple, list, Sequence):
        return isinstance(value, list | tuple) and all(conforms(item, inner[0]) for item in value)
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    if hint is int:
        return type(value) is int and -(2**63) <= value < 2**63
    if isinstance(hint, type) and issubclass(hint, Enum):
        return isinstance(value, str)
    return type(value) is hint or (hint is str and isinstance(value, str))


def _is_dataclass(value: Any, hint: Any) -> bool:
    hints = get_type_hints(hint)
    if isinstance(value, hint):
        return all(conforms(getattr(value, item.name), hints[item.name]) for item in fields(hint))
    return isinstance(value, Mapping) and all(conforms(item, hints[key]) for key, item in value.items() if key in hints)


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(_finite(item) for item in value.values())
    return not isinstance(value, list | tuple) or all(_finite(item) for item in value)
