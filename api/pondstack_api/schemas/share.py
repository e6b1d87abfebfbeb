"""Schemas of shares: what instances have beside local memory. The operator's answers have hosts as well."""

from pondstack_api.schemas import base

HOSTS = {
    "hosts": {
        "type": "array",
        "items": base.NAME,
        "description": "hosts that it has it on; several while it is moved (operator only)",
    }
}
SHARE = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance"),
        "project_id": base.described(base.TEXT, "project of the instance"),
        "pool_mib": base.described(base.COUNT, "what of its memory is pool memory, in MiB"),
        "remote_mib": base.nullable(
            base.described(
                base.COUNT, "what of its memory is remote by its flavor, in MiB; null: its host does not say"
            )
        ),
        "remote_lent_mib": base.described(
            base.COUNT, "what of that lenders have given, in MiB; what is missing is on its host's disk"
        ),
        "disk_mib": base.nullable(
            base.described(
                base.COUNT,
                "what of its memory is for its host's disk, in MiB; null: it is off, or its host does not say",
            )
        ),
        "swap_mib": base.nullable(
            base.described(base.COUNT, "size of its swap disk in MiB; null: its host does not say")
        ),
        "swap_lent_mib": base.described(base.COUNT, "what lenders have given for that, in MiB"),
        **HOSTS,
    },
    optional=tuple(HOSTS),
)
SHARES = base.page("shares", SHARE)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last instance seen"),
    consumer_uuid=base.described(base.UUID, "an instance, a UUID"),
    project_id=base.described(base.NAME, "a project; the operator's only, unless it is one's own"),
    host=base.described(base.NAME, "the name of a host (operator only)"),
)
