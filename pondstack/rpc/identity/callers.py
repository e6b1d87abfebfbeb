"""Who may call what: the one table of all verbs on the bus. A verb that is not in it is refused to everybody."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import Refused
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import AGENT_TOPIC, CONTROLLER_TOPIC, NODE_TOPIC, WAKER_TOPIC

ANY = "*"
"""Whatever the caller's name."""
RECEIVER = "="
"""The caller has the receiver's name: nova-compute and the agent of one host."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The roles that may call a verb, each with what its name must be.

    ANY, RECEIVER, or a path in the arguments, such as `report.host`: whom the call speaks for.
    """

    roles: Mapping[Role, str]

    def check(self, caller: Identity, receiver: str, verb: str, arguments: Mapping[str, Any]) -> None:
        """Raise Refused unless the caller may. `receiver`: the name of who was called."""
        wanted = self.roles.get(caller.role)
        if wanted is None:
            raise Refused(f"{caller} called {verb}, which is for {', '.join(self.roles) or 'nobody'} only")
        if wanted == ANY:
            return
        name = receiver if wanted == RECEIVER else value_at(arguments, wanted)
        if name != caller.name:
            raise Refused(f"{caller} called {verb} in the name of {name!r}")


def value_at(arguments: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path in the arguments of a call, None for nothing."""
    value: Any = arguments
    for word in path.split("."):
        value = value.get(word) if isinstance(value, Mapping) else None
    return value


HOST = Callers({Role.AGENT: "host"})
OPERATORS = Callers({Role.API: ANY})
"""The API, which has judged its own caller by policy."""
SCHEDULERS = Callers({Role.SCHEDULER: ANY})
OFFER_RDMA = "offer_rdma_ignore_errors"
"""Asks for a session of calls over RDMA, which controllers and agents have; each call in it is judged by itself."""
LEADER = Callers({Role.CONTROLLER: ANY})
"""Any controller; the agent's epoch tells the leader from the others (pondstack_agent.epoch)."""
OWN_COMPUTE = Callers({Role.COMPUTE: RECEIVER})

TABLE: Mapping[str, Mapping[str, Callers]] = {
    CONTROLLER_TOPIC: {
        # Agents, for their own hosts
        "assign": HOST,
        "acknowledge": HOST,
        "take_up": HOST,
        "release": HOST,
        "heartbeat": Callers({Role.AGENT: "report.host"}),
        "telemetry": HOST,
        "host_telemetry": HOST,
        "delegate": HOST,
        "reclaim": HOST,
        "release_buffers": HOST,
        "borrow": HOST,
        "acknowledge_borrowed": HOST,
        OFFER_RDMA: Callers({Role.AGENT: ANY}),
        # Schedulers
        "get_split": SCHEDULERS,
        "split_view": SCHEDULERS,
        "record_splits": SCHEDULERS,
        "snapshot": SCHEDULERS,
        # Operators
        "set_host": OPERATORS,
        "fence_host": OPERATORS,
        "unfence_host": OPERATORS,
        "set_host_slices": OPERATORS,
        "set_tiering": OPERATORS,
        "remove_host": OPERATORS,
        "remove_pool": OPERATORS,
        "delegate_host": OPERATORS,
        "reclaim_host": OPERATORS,
        "mitigate": OPERATORS,
        "abort_mitigation": OPERATORS,
        "suspend_host": OPERATORS,
        "wake_host": OPERATORS,
        "create_plan": OPERATORS,
        "apply_plan": OPERATORS,
        "cancel_plan": OPERATORS,
        "freeze_consolidation": OPERATORS,
        "limit_consolidation": OPERATORS,
        "create_planner_job": OPERATORS,
        "cancel_planner_job": OPERATORS,
        "remove_planner_job": OPERATORS,
        "promote_model": OPERATORS,
        "rollback_model": OPERATORS,
        "record_performance": OPERATORS,
        "set_project": OPERATORS,
        "audit": OPERATORS,
    },
    NODE_TOPIC: {
        "ping": Callers({Role.CONTROLLER: RECEIVER}),
        "snapshot": SCHEDULERS,
        "confirm_migration": HOST,
        "controllers": OPERATORS,
        "failover": OPERATORS,
    },
    AGENT_TOPIC: {
        # nova-compute
        "attach": OWN_COMPUTE,
        "await_guest": OWN_COMPUTE,
        "take_up": OWN_COMPUTE,
        "detach": OWN_COMPUTE,
        # The other end of a migration asks, too; the endpoint refuses those to whom no server moves.
        "get_attachment": Callers({Role.COMPUTE: ANY}),
        "hand_over": Callers({Role.COMPUTE: ANY}),  # the same
        "get_revoked": OWN_COMPUTE,
        "get_lent": OWN_COMPUTE,
        "alloc_ext": OWN_COMPUTE,
        "alloc_swap": OWN_COMPUTE,
        "release_remote": OWN_COMPUTE,
        "get_remote": OWN_COMPUTE,
        "extend": OWN_COMPUTE,
        "unextend": OWN_COMPUTE,
        "get_mirror_room": OWN_COMPUTE,
        "get_lost_guests": OWN_COMPUTE,
        "expect_guest": OWN_COMPUTE,
        "receive_guest": OWN_COMPUTE,
        "take_back": OWN_COMPUTE,
        "attach_swap": OWN_COMPUTE,
        "release_swap": OWN_COMPUTE,
        "get_swap": OWN_COMPUTE,
        # The leader
        "offline": LEADER,
        "report": LEADER,
        "hold": LEADER,
        "set_tiering": LEADER,
        "mitigate": LEADER,
        "get_mitigation": LEADER,
        "abort_mitigation": LEADER,
        "rewrite_domain": LEADER,
        "release_mitigated": LEADER,
        "lend": LEADER,
        "reclaim": LEADER,
        "export": LEADER,
        "escrow": LEADER,
        "share": LEADER,
        "revoke": LEADER,
        "withdraw": LEADER,
        "arm_doorbell": LEADER,
        "connect_doorbell": LEADER,
        "ring_doorbell": LEADER,
        "get_lending": LEADER,
        "prepare": LEADER,
        "connect": LEADER,
        "give_back": LEADER,
        "end_swap": LEADER,
        "get_borrowing": LEADER,
        "suspend": LEADER,
        "end_suspension": LEADER,
        "get_power": LEADER,
        OFFER_RDMA: LEADER,
    },
    WAKER_TOPIC: {"wake": LEADER, "told": LEADER, OFFER_RDMA: LEADER},
}


def check(topic: str, receiver: str, verb: Any, caller: Identity, arguments: Mapping[str, Any]) -> None:
    """Raise Refused unless `caller` may call `verb` of the receiver on a topic."""
    found = TABLE.get(topic, {}).get(verb) if isinstance(verb, str) else None
    if found is None:
        raise Refused(f"{caller} called {verb!r}, which nobody may call on {topic}")
    found.check(caller, receiver, verb, arguments)
