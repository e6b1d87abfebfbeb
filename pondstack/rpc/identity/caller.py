"""Who made a call, for an endpoint whose rule needs more than the table of callers: in the context, by the border."""

from collections.abc import Mapping
from typing import Any

from pondstack.rpc.identity.identity import Identity

KEY = "pondstack_caller"
"""In the context that an endpoint gets. What a sender put there is thrown away."""


def with_caller(context: Any, caller: Identity | None) -> dict[str, Any]:
    """Return a request's context with who signed it, None: nobody."""
    rest = dict(context) if isinstance(context, Mapping) else {}
    rest.pop(KEY, None)
    return rest if caller is None else {**rest, KEY: str(caller)}


def caller_of(context: Any) -> Identity | None:
    """Return who signed a call, None where nobody did: on a bus within one process, or let in for an upgrade."""
    found = context.get(KEY) if isinstance(context, Mapping) else None
    return None if found is None else Identity.parse(found)
