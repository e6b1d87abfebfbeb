"""One entry of the table of routes (pondstack_api.routes)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pondstack_api import schemas
from pondstack_api.request import Reply, Request

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path. `policy` None: open to everybody, without a token.

    `status`: of its answer; `since`: the microversion that it came with, before which the path does not exist;
    `errors`: statuses beside those that its parameters imply.
    """

    handler: Callable[[Request], Reply]
    summary: str
    policy: str | None
    response: Schema
    query: Schema = field(default_factory=schemas.base.query)
    body: Schema | None = None
    status: int = 200
    since: tuple[int, int] = (1, 0)
    errors: tuple[int, ...] = ()
