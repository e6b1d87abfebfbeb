"""The leader: which controller writes the ledger."""

from pondstack_api.request import Reply, Request


def show_leader(request: Request) -> Reply:
    """Show the leader, its epoch, and whether its lease is fresh."""
    leader = request.services.reader.leader()
    return Reply(
        {
            "holder": leader.holder,
            "epoch": leader.epoch,
            "age_seconds": round(leader.age_seconds, 1),
            "fresh": bool(leader.holder) and leader.age_seconds <= request.services.conf.api.leader_max_age_seconds,
        }
    )
