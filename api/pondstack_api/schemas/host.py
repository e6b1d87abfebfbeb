"""Schemas of hosts."""

from pondstack_api.schemas import base

HOST = base.closed(
    {
        "name": base.described(base.NAME, "name of the host: Nova's hypervisor hostname"),
        "enabled": base.described(base.FLAG, "whether the host may get new pool memory"),
        "disabled_reason": base.described(base.TEXT, "why it may not"),
        "up": base.described(base.FLAG, "whether its agent was heard of in time"),
        "provider_uuid": base.nullable(base.described(base.UUID, "UUID of the host's resource provider, once known")),
        "pools": {"type": "array", "items": base.UUID, "description": "UUIDs of the pools that the host reaches"},
        "pool_mib": base.described(base.COUNT, "pool memory that the host holds now, in MiB"),
        "generation": base.GENERATION,
        "created_at": base.CREATED_AT,
    }
)
HOSTS = base.page("hosts", HOST)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the name of the last host seen"))
UPDATE = base.closed(
    {
        "enabled": base.described(base.FLAG, "true: the host may get new pool memory; false: it may not"),
        "disabled_reason": {
            "type": "string",
            "maxLength": 255,
            "description": "why it may not, a text of at most 255 characters; only with enabled: false",
        },
        "generation": {
            "type": "integer",
            "minimum": 0,
            "description": "the generation that GET /hosts/{name} showed, an integer",
        },
    },
    optional=("disabled_reason",),
)
