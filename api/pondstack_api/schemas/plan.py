"""Schemas of consolidation plans, of the freeze, and of limits that are set at run time."""

from dataclasses import fields

from pondstack.domain.consolidation_limits import MOST_HOSTS
from pondstack.domain.plan import ActionKind, ActionState, Afterwards, Effect, PlanKind, PlanState, PlanTrigger
from pondstack_api.schemas import base

OPERATION_ID = base.described(
    base.UUID, "a UUID of yours: a request that is repeated with it is carried out once, and answered with its progress"
)
_AFTERWARDS: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in Afterwards],
    "description": "what becomes of emptied hosts: keep (awake, disabled), lend (their memory), suspend (lend, sleep)",
}
ACTION = base.closed(
    {
        "number": base.described(base.COUNT, "its place in the plan, from 1"),
        "kind": {
            "type": "string",
            "enum": [str(item) for item in ActionKind],
            "description": "what is done",
        },
        "chain": base.described(base.NAME, "host that it is done for; a chain's kinds go one after the other"),
        "host": base.described(base.NAME, "host where it is done; of a migration its source"),
        "server_uuid": base.nullable(base.described(base.UUID, "server that is migrated; null: none")),
        "destination": base.nullable(
            base.described(base.NAME, "host that it moves to; null: none, or Nova's scheduler finds one")
        ),
        "mib": base.described(base.COUNT, "local memory that a migration copies, or that a host lends, in MiB"),
        "state": {
            "type": "string",
            "enum": [str(item) for item in ActionState],
            "description": "skipped: there was nothing to do, or the plan ended before",
        },
        "reason": base.described(base.TEXT, "why it waits or ended so; empty: nothing to tell"),
        "tries": base.described(base.COUNT, "how often it was begun"),
    }
)
NUMBER: base.Schema = {"type": "number"}
EFFECT = base.closed(
    {
        "hosts_emptied": base.described(base.COUNT, "hosts that are emptied"),
        "hosts_woken": base.described(base.COUNT, "hosts that are woken"),
        "gained_mib": {"type": "integer", "description": "memory that hosts could lend more, in MiB"},
        "saved_watts": base.nullable(
            base.described(NUMBER, "an estimate by power_profile, not a measurement; null: none was made")
        ),
        "power_profile": base.described(base.TEXT, "profile that the estimate is by (Zombieland, Table 3)"),
        "migrations": base.described(base.COUNT, "live migrations"),
        "moved_mib": base.described(base.COUNT, "local memory that they copy, in MiB"),
        "worst_load_percent": base.described(
            NUMBER,
            "greatest CPU load of a destination afterwards, in percent of what it may be: near 100 it is risky",
        ),
        "whole_memory": base.described(
            base.COUNT, "migrated servers whose working set is unknown or too old: all of their local memory counts"
        ),
        "overloaded_left": base.described(base.COUNT, "hosts that stay overloaded"),
    }
)
assert set(EFFECT["properties"]) == {item.name for item in fields(Effect)}
_STATE: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in PlanState],
    "description": "deciding, proposed, running, undoing; done, failed and cancelled are ends",
}
PLAN = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the plan"),
        "kind": {
            "type": "string",
            "enum": [str(item) for item in PlanKind],
            "description": "consolidate: empty idle hosts, relieve overloaded ones; drain one host; restore it",
        },
        "trigger": {
            "type": "string",
            "enum": [str(item) for item in PlanTrigger],
            "description": "who wanted it",
        },
        "state": _STATE,
        "afterwards": _AFTERWARDS,
        "host": base.nullable(base.described(base.NAME, "host that is drained or restored; null: of consolidate")),
        "reason": base.described(base.TEXT, "why it waits or ended so; empty: nothing to tell"),
        "effect": {**EFFECT, "description": "what it is expected to bring"},
        "settings": {"type": "object", "description": "algorithms and limits that it is decided by"},
        "inputs": {"type": "object", "description": "what was looked at, and the greatest age of each kind of figure"},
        "left_out": {"type": "object", "description": "by host (or server that stays) why it takes no part"},
        "created_at": base.CREATED_AT,
        "decided_at": base.nullable(base.described(base.TIME, "when it was decided; null: it was not yet")),
        "ended_at": base.nullable(base.described(base.TIME, "when it ended; null: it did not")),
        "actions": {"type": "array", "items": ACTION, "description": "what is to be done, in order (not in lists)"},
    },
    optional=("actions",),
)
PLANS = base.page("plans", PLAN)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last plan seen"),
    state=_STATE,
)


def _percent(what: str) -> base.Schema:
    return {"type": "number", "minimum": 0, "maximum": 100, "description": what}


def _name(what: str) -> base.Schema:
    return base.described(base.NAME, what)


CREATE = base.closed(
    {
        "underload": _name("how underloaded hosts are found: static, average, lifetime"),
        "overload": _name("how overloaded hosts are found: static, mad, iqr, local-regression"),
        "selection": _name("who leaves one first: least-memory, least-load, random, longest-lifetime"),
        "placement": _name("which fitting host gets a server: best-fit, worst-fit, lifetime"),
        "afterwards": _AFTERWARDS,
        "underload_percent": _percent("CPU load up to which a host is underloaded"),
        "overload_percent": _percent("CPU load that no host is to reach"),
        "most_migrations": base.described(base.COUNT, "servers that it migrates at most"),
        "most_emptied": base.described(base.COUNT, "hosts that it empties at most"),
        "least_awake": base.described(base.COUNT, "hosts that stay awake at least"),
        "operation_id": OPERATION_ID,
    },
    optional=(
        "underload",
        "overload",
        "selection",
        "placement",
        "afterwards",
        "underload_percent",
        "overload_percent",
        "most_migrations",
        "most_emptied",
        "least_awake",
        "operation_id",
    ),
)
ASK = base.closed({"operation_id": OPERATION_ID}, optional=("operation_id",))
FREEZE = base.closed(
    {
        "frozen": base.described(base.FLAG, "true: no plan of consolidation begins or goes on"),
        "reason": base.described(base.NAME, "why; with frozen only"),
        "operation_id": OPERATION_ID,
    },
    optional=("reason", "operation_id"),
)
_LIMITS: base.Schema = {
    "reserve_percent": base.nullable(
        _percent(
            "of the VCPUs and of the memory that may be claimed of awake hosts: so much plans keep free; null: as "
            "[consolidation] reserve_percent says"
        )
    ),
    "least_awake": base.nullable(
        base.described(base.COUNT, "hosts that stay awake at least; null: as [consolidation] least_awake says")
        | {"maximum": MOST_HOSTS}
    ),
}
LIMITS = {
    **base.closed({**_LIMITS, "operation_id": OPERATION_ID}, optional=(*_LIMITS, "operation_id")),
    "minProperties": 1,
}
CONSOLIDATION = base.closed(
    {
        "frozen": base.described(base.FLAG, "whether no plan of consolidation begins or goes on"),
        "reason": base.nullable(base.described(base.TEXT, "why it is frozen; null: it is not")),
        "since": base.nullable(base.described(base.TIME, "since when it is frozen; null: it is not")),
        "limits": {
            **base.closed(_LIMITS),
            "description": "what is set in place of options; since 1.23",
        },
    },
    optional=("limits",),
)
