"""Schemas of hosts."""

from pondstack.domain.host_sleep import SleepState
from pondstack.domain.power import MODES
from pondstack.domain.printable import PRINTABLE
from pondstack_api.schemas import base, lender

TIERING: base.Schema = {
    "type": "object",
    "description": "how its kernel tiers between local and pool memory; empty: nothing is configured; since 1.4",
    "properties": {
        "settings": {
            "type": "object",
            "additionalProperties": base.TEXT,
            "description": "what the kernel has, by option of the agent, or interleave_nodeN",
        },
        "tiers": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": base.COUNT},
            "description": "the nodes of each memory tier; a higher tier is slower memory",
        },
        "trouble": {"type": "array", "items": base.TEXT, "description": "what is not as it should be"},
    },
    "additionalProperties": False,
}
DRIVER: base.Schema = {"type": "string", "enum": list(MODES)}
LENDING: base.Schema = {
    **base.closed(
        {
            "lent_mib": base.described(base.COUNT, "size of all buffers that it lends, in MiB"),
            "admitted_mib": base.described(
                base.COUNT, "what of them may be borrowed, in MiB: Nova places nothing there any more"
            ),
            "operation": base.nullable(
                base.described(lender.OPERATION, "what it is to lend, with what it waits for; null: nothing")
            ),
        }
    ),
    "description": "the DRAM that it lends to others; since 1.10",
}
BORROWING: base.Schema = {
    **base.closed(
        {
            "guaranteed_mib": base.described(base.COUNT, "for parts of instances' memory, in MiB"),
            "best_effort_mib": base.described(base.COUNT, "for swap disks, in MiB"),
        }
    ),
    "description": "what it has from lenders; since 1.18",
}
SLEEP: base.Schema = {
    **base.closed(
        {
            "state": {
                "type": "string",
                "enum": [str(item) for item in SleepState],
                "description": "disabling, lending, suspending, asleep, waking, reclaiming and enabling follow each "
                "other; awake, failed and aborted are ends; lost: it stopped serving while it slept, look at it",
            },
            "driver": base.described(DRIVER, "how it sleeps"),
            "serves": base.described(base.FLAG, "whether others reach the memory that it lends while it sleeps"),
            "emulated": base.described(base.FLAG, "true: the sleep is emulated for tests, and nothing is saved"),
            "lent_mib": base.described(base.COUNT, "what it lends while it sleeps, in MiB"),
            "reason": base.described(base.TEXT, "what it waits for, or why it ended so; empty: nothing to tell"),
            "created_at": base.described(base.TIME, "when it was to be suspended (ISO 8601, UTC)"),
            "updated_at": base.described(base.TIME, "when that changed last"),
            "ended_at": base.nullable(base.described(base.TIME, "when it was awake again; null: it goes on")),
        }
    ),
    "description": "its newest sleep",
}
WATTS: base.Schema = {"type": "number", "minimum": 0}
ESTIMATE: base.Schema = {
    **base.closed(
        {
            "profile": base.described(base.TEXT, "power profile that it is by"),
            "idle_watts": base.described(WATTS, "awake and idle, in watts"),
            "asleep_watts": base.nullable(
                base.described(WATTS, "asleep, in watts; null: the profile has no figure of the driver")
            ),
        }
    ),
    "description": "what it is thought to take; nothing is measured",
}
POWER: base.Schema = {
    **base.closed(
        {
            "driver": base.described(DRIVER, "how it sleeps; of a host that is awake: as it would by default"),
            "memory_reachable": base.described(base.FLAG, "whether others reach its memory, awake or asleep"),
            "estimate": ESTIMATE,
        }
    ),
    "description": "whether its memory is reachable, and an estimate of its power; since 1.21",
}
HOST_SLICES: base.Schema = {
    "type": "array",
    "items": base.closed(
        {
            "pool_uuid": base.described(base.UUID, "the pool"),
            "purpose": base.described(
                {"type": "string", "enum": ["tier", "base"]},
                "tier: its kernel demotes cold pages to them; base: they keep the pool's memory node online",
            ),
            "wanted": base.described(base.COUNT, "how many it is to hold"),
            "online": base.described(base.COUNT, "how many it has online"),
            "reason": base.described(base.TEXT, "what it waits for; empty: nothing"),
        }
    ),
    "description": "the slices that it holds, or is to hold, for itself; since 1.11",
}
HOST = base.closed(
    {
        "name": base.described(base.NAME, "name of the host: Nova's hypervisor hostname"),
        "enabled": base.described(base.FLAG, "whether the host may get new pool memory"),
        "disabled_reason": base.described(base.TEXT, "why it may not"),
        "fenced": base.described(base.FLAG, "whether it is fenced: it gets nothing; since 1.1"),
        "fenced_reason": base.described(base.TEXT, "why it is; since 1.1"),
        "up": base.described(base.FLAG, "whether its agent was heard of in time"),
        "provider_uuid": base.nullable(base.described(base.UUID, "UUID of the host's resource provider, once known")),
        "pools": {"type": "array", "items": base.UUID, "description": "UUIDs of the pools that the host reaches"},
        "pool_mib": base.described(base.COUNT, "pool memory that the host holds now, in MiB"),
        "tiering": TIERING,
        "lending": LENDING,
        "borrowing": BORROWING,
        "sleep": base.nullable(base.described(SLEEP, "its newest sleep; null: it never slept; since 1.19")),
        "power": POWER,
        "host_slices": HOST_SLICES,
        "tiering_on": base.nullable(
            base.described(
                base.FLAG, "whether its kernel was told to tier; null: it does as its agent is configured; since 1.11"
            )
        ),
        "generation": base.GENERATION,
        "created_at": base.CREATED_AT,
    },
    optional=(
        "fenced",
        "fenced_reason",
        "tiering",
        "lending",
        "borrowing",
        "sleep",
        "power",
        "host_slices",
        "tiering_on",
    ),
)
HOSTS = base.page("hosts", HOST)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the name of the last host seen"))
SHOWN_GENERATION: base.Schema = {
    "type": "integer",
    "minimum": 0,
    "description": "the generation that GET /hosts/{name} showed, an integer",
}
UPDATE = base.closed(
    {
        "enabled": base.described(base.FLAG, "true: the host may get new pool memory; false: it may not"),
        "disabled_reason": {
            "type": "string",
            "maxLength": 255,
            "pattern": PRINTABLE,
            "description": "why it may not, a text of at most 255 printable characters; only with enabled: false",
        },
        "generation": SHOWN_GENERATION,
    },
    optional=("disabled_reason",),
) | {
    "if": {"properties": {"enabled": {"const": True}}},
    "then": {
        "properties": {
            "disabled_reason": {"maxLength": 0, "description": "it goes with enabled: false only; leave it out"}
        }
    },
}
_OPERATION_ID = base.described(
    base.UUID, "a UUID of yours: a request that is repeated with it is carried out once, and answered with its progress"
)
SUSPEND = base.closed(
    {
        "driver": base.described(DRIVER, "how it is to sleep; by default [sleep] driver of the controllers"),
        "mib": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2147483647,
            "description": "what it lends while it sleeps, in MiB; by default all that it can spare, 0: nothing",
        },
        "operation_id": _OPERATION_ID,
    },
    optional=("driver", "mib", "operation_id"),
)
WAKE = base.closed({"operation_id": _OPERATION_ID}, optional=("operation_id",))
SET_SLICES = base.closed(
    {
        "pool_uuid": base.described(base.UUID, "UUID of the pool; by default the only one that the host reaches"),
        "purpose": {"type": "string", "enum": ["tier", "base"], "description": "what for, one of tier, base"},
        "count": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1048576,
            "description": "how many slices in all, an integer from 0 to what the pool has",
        },
        "generation": SHOWN_GENERATION,
    },
    optional=("pool_uuid",),
)
SET_TIERING = base.closed(
    {
        "on": base.nullable(
            base.described(base.FLAG, "true: demote and promote; false: neither; null: as its agent is configured")
        ),
        "generation": SHOWN_GENERATION,
    }
)
FENCE = base.closed(
    {
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": PRINTABLE,
            "description": "how you know that the host is dead, a text of 1 to 255 printable characters",
        },
        "force": base.described(base.FLAG, "true: although its agent was heard of lately; by default false"),
        "generation": base.described(
            SHOWN_GENERATION,
            "the generation that GET /hosts/{name} showed, an integer: another one is not fenced; required since 1.17, "
            "before which there is none",
        ),
    },
    optional=("force", "generation"),
)
UNFENCE = base.closed({})
