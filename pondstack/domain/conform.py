"""Whether what came over RPC is what its receiver declares: annotations of values and of methods, as shapes.

Signatures say who sends; nobody says that a host which was taken over sends what its agent would. A field of another
type would be found where it is used, long after it was stored.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pondstack.domain.errors import BadRequest
from pondstack.domain.model import Extent
from pondstack.domain.shape import (
    ANYTHING,
    MOST,
    Fields,
    Flag,
    Index,
    Items,
    Nullable,
    Number,
    Row,
    Shape,
    Table,
    Text,
    Whole,
)

SHAPE = "shape"
"""In the metadata of a field: a shape that says more than the field's type."""
MOST_SLICES = 2**20
"""Of a pool device."""

_TEXT, _WHOLE, _NUMBER = Text(2**24), Whole(-MOST, MOST), Number(-1e300, 1e300)
_PLAIN: Mapping[Any, Shape] = {str: _TEXT, bool: Flag(), int: _WHOLE, float: _NUMBER, Any: ANYTHING}
_EXTENT = Fields({"start": Whole(0, MOST_SLICES - 1), "count": Whole(1, MOST_SLICES)}, others=True)


@cache
def shape_of(hint: Any) -> Shape:
    """Return the shape of an annotation, as JSON carries its values; raises TypeError for one that it cannot carry."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Extent:
        return _EXTENT
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _TEXT  # a newer sender has words that this one does not know
    if is_dataclass(hint):
        kind: Any = hint
        return fields_of(kind)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        return Nullable(shape_of(next(item for item in inner if item is not NoneType)))
    if origin is tuple and inner[-1] is not Ellipsis:
        return Row(tuple(shape_of(item) for item in inner))
    if origin in (tuple, list, Sequence):
        return Items(shape_of(inner[0]))
    if origin in (dict, Mapping):
        return Table(Index() if inner[0] is int else shape_of(inner[0]), shape_of(inner[1]))
    raise TypeError(f"{hint} does not cross RPC")


@cache
def fields_of(kind: Any) -> Fields:
    """Return the shape of a dataclass: fields with a default may be missing, and a newer sender has more."""
    hints = get_type_hints(kind)
    shapes: dict[str, Shape] = {
        item.name: item.metadata.get(SHAPE) or shape_of(hints[item.name]) for item in fields(kind)
    }
    needed = {item.name for item in fields(kind) if _needed(item)}
    required = {name: shape for name, shape in shapes.items() if name in needed}
    return Fields(required, {name: shape for name, shape in shapes.items() if name not in needed}, others=True)


@cache
def arguments_of(method: Callable[..., Any]) -> Mapping[str, Shape]:
    """Return the shapes of a method's keyword arguments, by name; `Annotated[T, Shape]` says more than T."""
    hints = get_type_hints(method, include_extras=True)
    keywords = (item for item in inspect.signature(method).parameters.values() if item.kind is item.KEYWORD_ONLY)
    return {item.name: _stated(hints[item.name]) or shape_of(hints[item.name]) for item in keywords}


def check_value(kind: type, data: Any) -> None:
    """Raise BadRequest unless `data` is a dataclass as the wire has it."""
    try:
        fields_of(kind).check(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"this is no {kind.__name__} of an RPC: {error}; are both sides of one version?") from error


def check_present(kind: type, given: Mapping[str, Any]) -> None:
    """Raise BadRequest for a field of another type than a dataclass's; that one lacks, or is unknown, Python says."""
    shape = fields_of(kind)
    _check({**shape.required, **shape.optional}, given, kind.__name__)


def check_arguments(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise BadRequest for an argument of another type than a method's; as check_present."""
    _check(arguments_of(method), arguments, method.__name__)


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method refuse arguments of other types than it declares: BadRequest."""

    @wraps(method)
    def checking(*arguments: Any, **named: Any) -> Any:
        check_arguments(method, named)
        return method(*arguments, **named)

    return checking


def _check(shapes: Mapping[str, Shape], given: Mapping[str, Any], of: str) -> None:
    for name, value in given.items():
        if name in shapes:
            try:
                shapes[name].check(value, name)
            except (ValueError, RecursionError) as error:
                raise BadRequest(f"{of}: {error}; are both sides of one version?") from error


def _stated(hint: Any) -> Shape | None:
    return next((item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Shape)), None)


def _needed(item: "Field[Any]") -> bool:
    return item.default is MISSING and item.default_factory is MISSING
