"""The one error tree. Codes are stable and never reused; the text says what the operator does next.

PondError
├── BadRequest              pondstack.bad_request
│   ├── BadSpec             pondstack.bad_spec
│   └── NotAligned          pondstack.not_aligned
├── NotFound                pondstack.not_found
├── Conflict                pondstack.conflict
│   ├── IllegalTransition   pondstack.illegal_transition
│   ├── GenerationConflict  pondstack.generation_conflict
│   ├── OperationMismatch   pondstack.operation_mismatch
│   ├── StaleEpoch          pondstack.stale_epoch
│   ├── InUse               pondstack.in_use
│   ├── NotEmpty            pondstack.not_empty
│   └── PermissionHeld      pondstack.permission_held
├── PoolShortage            pondstack.pool_shortage
│   └── PoolFragmented      pondstack.pool_fragmented
├── BufferShortage          pondstack.buffer_shortage
├── Unclaimed               pondstack.unclaimed
├── HostUnusable            pondstack.host_unusable
│   └── PurposeConflict     pondstack.purpose_conflict
├── NoLocalRoom             pondstack.no_local_room
├── Refused                 pondstack.refused
└── Unavailable             pondstack.unavailable
    ├── StaleMessage        pondstack.stale_message
    ├── NotLeader           pondstack.not_leader
    ├── AgentUnavailable    pondstack.agent_unavailable
    ├── DeviceFailed        pondstack.device_failed
    └── SlicesReturning     pondstack.slices_returning

Every class takes one positional text, so that it crosses RPC unchanged.
"""


class PondError(Exception):
    """Base of all errors that pondstack raises on purpose."""

    code = "pondstack.error"
    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(PondError):
    """The caller asked for something malformed."""

    code = "pondstack.bad_request"
    status = 400


class BadSpec(BadRequest):
    """A `pond:` extra spec is unknown, malformed or contradicts another one."""

    code = "pondstack.bad_spec"


class NotAligned(BadRequest):
    """An amount is not a multiple of the slice size."""

    code = "pondstack.not_aligned"


class NotFound(PondError):
    """No such pool, slice, host, allocation or agent."""

    code = "pondstack.not_found"
    status = 404


class Conflict(PondError):
    """The request contradicts the present state."""

    code = "pondstack.conflict"
    status = 409


class IllegalTransition(Conflict):
    """The state machine has no such transition."""

    code = "pondstack.illegal_transition"


class GenerationConflict(Conflict):
    """Somebody else changed the object since it was read."""

    code = "pondstack.generation_conflict"


class OperationMismatch(Conflict):
    """An operation id was reused for a different request."""

    code = "pondstack.operation_mismatch"


class StaleEpoch(Conflict):
    """The sender's epoch is older than one already seen: it is no longer the leader."""

    code = "pondstack.stale_epoch"


class InUse(Conflict):
    """The slices are mapped by a running guest."""

    code = "pondstack.in_use"


class NotEmpty(Conflict):
    """A host or a pool cannot be removed: something is still there."""

    code = "pondstack.not_empty"


class PermissionHeld(Conflict):
    """The device's permission table names another owner."""

    code = "pondstack.permission_held"


class PoolShortage(PondError):
    """No pool that the host reaches has enough free slices."""

    code = "pondstack.pool_shortage"
    status = 409


class PoolFragmented(PoolShortage):
    """Enough slices are free, but not in the shape that was asked for."""

    code = "pondstack.pool_fragmented"


class BufferShortage(PondError):
    """Other hosts do not lend enough memory for a guaranteed allocation."""

    code = "pondstack.buffer_shortage"
    status = 409


class Unclaimed(PondError):
    """The consumer has no claim in Placement for a guaranteed allocation."""

    code = "pondstack.unclaimed"
    status = 409


class HostUnusable(PondError):
    """The host is unknown, disabled or does not reach the pool."""

    code = "pondstack.host_unusable"
    status = 409


class PurposeConflict(HostUnusable):
    """The host's node of that pool is taken for something else: guests, or tiering."""

    code = "pondstack.purpose_conflict"


class NoLocalRoom(PondError):
    """The host has no local memory for what a guest has on the pool."""

    code = "pondstack.no_local_room"
    status = 409


class Refused(PondError):
    """A message on the bus is not of the party in whose name it came, or that party may not call this."""

    code = "pondstack.refused"
    status = 500


class Unavailable(PondError):
    """Try again later; nothing was changed."""

    code = "pondstack.unavailable"
    status = 503


class StaleMessage(Unavailable):
    """A message on the bus was signed too long ago, or came before."""

    code = "pondstack.stale_message"


class NotLeader(Unavailable):
    """This controller does not hold the lease."""

    code = "pondstack.not_leader"


class AgentUnavailable(Unavailable):
    """The host's agent does not answer."""

    code = "pondstack.agent_unavailable"


class DeviceFailed(Unavailable):
    """The pool device does not answer or failed an operation."""

    code = "pondstack.device_failed"


class SlicesReturning(Unavailable):
    """Too few slices are free, and enough are on their way back: nothing was assigned, ask again soon."""

    code = "pondstack.slices_returning"


def to_domain(error: PondError) -> PondError:
    """Return an error as the nearest class of this module, so that it can cross RPC (once more)."""
    kind: type[PondError] = next(item for item in type(error).__mro__ if item.__module__ == __name__)
    return kind(error.message)


def by_name(name: str) -> type[PondError] | None:
    """Return the class of that name, None when there is none: names come from files and other processes."""
    return KINDS.get(name)


KINDS = {name: kind for name, kind in vars().items() if isinstance(kind, type) and issubclass(kind, PondError)}
"""All classes, by name."""
