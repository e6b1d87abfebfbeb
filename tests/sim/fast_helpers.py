"""Quicker doubles of what is called very often; they answer the same."""

from dataclasses import fields
from typing import Any

_NAMES: dict[type, tuple[str, ...]] = {}
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def asdict(value: Any) -> Any:
    """dataclasses.asdict for the plain values that are on the wire and on disk."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return kind([asdict(item) for item in value])
    if kind is dict:
        return {key: asdict(item) for key, item in value.items()}
    names = _NAMES.get(kind)
    if names is None:
        try:
            names = _NAMES[kind] = tuple(item.name for item in fields(value))
        except TypeError:
            return value  # an enumeration's member
    return {name: asdict(getattr(value, name)) for name in names}
