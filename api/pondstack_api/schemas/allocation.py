"""Schemas of allocations. The operator's answers have the place as well; a project's have not."""

from pondstack_api.schemas import base

EXTENT = base.closed(
    {
        "start": base.described(base.COUNT, "first slice"),
        "count": base.described(base.COUNT, "number of adjacent slices"),
    }
)
PLACE = {
    "host": base.described(base.NAME, "host that holds the memory (operator only)"),
    "pool_uuid": base.described(base.UUID, "pool that it comes from (operator only)"),
    "pool_name": base.described(base.NAME, "name of that pool (operator only)"),
    "slice_mib": base.described(base.COUNT, "size of one of its slices in MiB (operator only)"),
    "extents": {
        "type": "array",
        "items": EXTENT,
        "description": "its slices; one extent is one node of the guest without CPUs (operator only)",
    },
}
ALLOCATION = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the allocation"),
        "consumer_uuid": base.described(base.UUID, "instance that has the memory, or what a host slice is claimed by"),
        "project_id": base.described(base.TEXT, "project of the instance"),
        "user_id": base.described(base.TEXT, "user of the instance"),
        "state": base.described(base.STATE_OF_SLICE, "the least advanced state of its slices"),
        "local_mib": base.described(
            base.COUNT,
            "memory of the guest that is not from the pool, in MiB; GET /shares/{consumer} tells what of it is remote",
        ),
        "pool_mib": base.described(base.COUNT, "memory of the guest that comes from the pool, in MiB"),
        "guest_mib": base.described(base.COUNT, "all memory that the guest sees, in MiB"),
        "generation": base.GENERATION,
        "created_at": base.CREATED_AT,
        "purpose": base.described(
            {"type": "string", "enum": ["guest", "tier", "base"]},
            "guest: of an instance; tier, base: of its host itself; since 1.11",
        ),
        **PLACE,
    },
    optional=("purpose", *PLACE),
)
ALLOCATIONS = base.page("allocations", ALLOCATION)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last allocation seen"),
    consumer_uuid=base.described(base.UUID, "an instance, a UUID"),
    project_id=base.described(base.NAME, "a project; the operator's only, unless it is one's own"),
    host=base.described(base.NAME, "the name of a host (operator only)"),
    pool_uuid=base.described(base.UUID, "the UUID of a pool (operator only)"),
)
