"""What a handler gets and gives back: validated values in, a plain document out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pondstack_api.context import RequestContext
from pondstack_api.services import Services


@dataclass(frozen=True, slots=True)
class Request:
    """One request whose caller is known and allowed, whose query and body fit the route's schemas."""

    context: RequestContext
    services: Services
    args: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    url: str
    version: tuple[int, int]
    document: Callable[[], dict[str, Any]]
    """Builds the OpenAPI document of the table that serves this request."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a handler; `body` is made of JSON types, None for an answer without one (204)."""

    body: dict[str, Any] | None
    headers: Mapping[str, str] = field(default_factory=dict)
