"""Schemas of controllers."""

from pondstack_api.schemas import base

CONTROLLER = base.closed(
    {
        "name": base.described(base.NAME, "name of the controller: [controller] name of its configuration"),
        "role": {
            "type": "string",
            "enum": ["leader", "standby", "down"],
            "description": "leader: it writes the ledger; standby: it follows and may take over; down: it is silent",
        },
        "holder": base.described(base.TEXT, "its name in the leadership row: name, process id, a random part"),
        "epoch": base.described(base.COUNT, "the epoch that it leads with, or led with last; 0: it never led"),
        "started_at": base.described(base.TIME, "when it started (ISO 8601, UTC)"),
        "seen_seconds": {"type": "number", "description": "seconds since it was heard of, by the database's clock"},
        "followed_sequence": base.described(base.COUNT, "the last operation of the journal that it has followed"),
        "lag": base.described(base.COUNT, "how many operations the journal has behind that one"),
        "reaches_broker": base.nullable(
            base.described(base.FLAG, "whether it reaches the message broker; null: it never said so; since 1.2")
        ),
        "reached_seconds": base.nullable(
            {
                "type": "number",
                "description": "seconds since it last did, by the database's clock; null: it never said so; since 1.2",
            }
        ),
    },
    optional=("reaches_broker", "reached_seconds"),
)
CONTROLLERS = base.page("controllers", CONTROLLER)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the name of the last controller seen"))
FAILOVER = base.closed(
    {
        "to": base.nullable(
            base.described(base.NAME, "name of the controller that shall lead; null or left out: who is least behind")
        )
    },
    optional=("to",),
)
FAILOVER_BEGUN = base.closed(
    {
        "from": base.described(base.NAME, "name of the controller that hands over"),
        "to": base.nullable(base.described(base.NAME, "name of the one that shall lead; null: who is least behind")),
        "epoch": base.described(base.COUNT, "the epoch that it ends; the new leader's is higher"),
    }
)
