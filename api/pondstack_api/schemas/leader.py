"""Schema of the leader."""

from pondstack_api.schemas import base

LEADER = base.closed(
    {
        "holder": base.described(
            base.TEXT, "who writes the ledger: name of the controller, process id, a random part; empty: nobody yet"
        ),
        "epoch": base.described(base.COUNT, "its epoch, which only grows"),
        "age_seconds": {"type": "number", "description": "seconds since it renewed its lease, by the database's clock"},
        "fresh": base.described(base.FLAG, "whether that is within [api] leader_max_age_seconds"),
    }
)
