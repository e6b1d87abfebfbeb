"""Schemas of pools."""

from pondstack.domain.states import SliceState
from pondstack_api.schemas import base

_SLICES = base.closed({str(state): base.described(base.COUNT, f"slices that are {state}") for state in SliceState})

FREE_BUFFER: base.Schema = {
    **base.closed(
        {
            "slices": base.described(base.COUNT, "how many free slices are kept back"),
            "needed_slices": base.described(base.COUNT, "how many the recent starts ask for, before the bounds"),
            "give_back_seconds": base.nullable(
                {
                    "type": "number",
                    "minimum": 0,
                    "description": "how long slices need to come back; null: none did lately",
                }
            ),
            "starts": base.described(base.COUNT, "how many starts the size rests on"),
            "misses": base.described(
                base.COUNT, "starts that found too few free slices, since the pool was registered"
            ),
        }
    ),
    "description": "the free slices that Placement does not offer, and why as many; since 1.8",
}
POOL = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the pool, and of its resource provider in Placement"),
        "name": base.described(base.NAME, "name of the pool in the controller's configuration"),
        "serial": base.described(base.TEXT, "serial number of the device"),
        "driver": base.described(base.TEXT, "driver by which the controller reaches the device"),
        "state": {"type": "string", "enum": ["up", "failed"], "description": "health of the device: up or failed"},
        "slice_mib": base.described(base.COUNT, "size of one slice in MiB"),
        "slices_total": base.described(base.COUNT, "number of slices of the device"),
        "slices": base.described(_SLICES, "number of slices in each state"),
        "free_buffer": FREE_BUFFER,
        "hosts": {"type": "array", "items": base.NAME, "description": "names of the hosts that reach the pool"},
        "generation": base.GENERATION,
        "created_at": base.CREATED_AT,
    },
    optional=("free_buffer",),
)
POOLS = base.page("pools", POOL)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.UUID, "the UUID of the last pool seen"))
