"""What a mitigation does next, decided from what is seen of its guest. Pure: pondstack.controller.mitigation acts.

The order is the point: local memory is claimed before a page moves, the guest's domain is off the pool before its
slices go back, and they are back before the claim gives up its pool share. All of it compares states, so that the next
leader goes on wherever the last one ended. While the claim covers all of the guest's memory as local, a guest that is
started anew is all local and gives its slices up by itself; that is as good an end as any.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState

_S = MitigationState


class Act(StrEnum):
    """What is to be done, besides writing down where the mitigation is.

    CLAIM, UNCLAIM, UNDO_CLAIM change what the guest claims in Placement; COPY, STOP, REWRITE, GIVE_BACK are commands to
    its host's agent; MIGRATE asks Nova; WAIT does nothing.
    """

    WAIT = "wait"
    CLAIM = "claim"
    COPY = "copy"
    STOP = "stop"
    REWRITE = "rewrite"
    GIVE_BACK = "give_back"
    UNCLAIM = "unclaim"
    UNDO_CLAIM = "undo_claim"
    MIGRATE = "migrate"


class Server(NamedTuple):
    """What Nova says of the guest. `busy`: what it does with it, "" for nothing; `running`: its process is there."""

    host: str
    busy: str = ""
    running: bool = True


class Copy(NamedTuple):
    """What the agent says of its newest copy of the guest; `mine`: it is of this attempt."""

    state: str
    left_mib: int = 0
    reason: str = ""
    mine: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a guest. `server` None: it was deleted; `seconds`: for how long the mitigation is in its state.

    `all_local`: its claim covers all its memory as local; `holds`: it has slices on the mitigation's host; `elsewhere`:
    on another one. `turn`: few enough others are under way. `claimed`: what it claims, {provider: {class: MiB}}.
    """

    server: Server | None
    all_local: bool = False
    holds: bool = True
    elsewhere: bool = False
    copy: Copy | None = None
    seconds: float = 0.0
    turn: bool = True
    claimed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """See [mitigation]. Times in seconds."""

    idle_seconds: float = 300.0
    copy_seconds: float = 1800.0
    view_seconds: float = 10.0
    retry_seconds: float = 60.0
    retries: int = 3


class Step(NamedTuple):
    """`state`: the one to be in, the present one to stay. `ending`: see Work, None: as it is. `again`: one try more."""

    act: Act
    state: MitigationState
    reason: str = ""
    ending: str | None = None
    method: MitigationMethod | None = None
    host: str | None = None
    again: bool = False
    undone: bool = False
    correct: bool | None = None
    """Whether the split is to be marked, or to be put back; None: neither."""


GONE = "the server was deleted"


def decide(item: Mitigation, seen: Seen, limits: Limits) -> Step:
    """Return the next step of an open mitigation."""
    if seen.server is None:
        return Step(Act.WAIT, _S.FAILED, GONE)
    if item.state is not _S.UNCLAIMING and (off := _off_already(item, seen, seen.server)):
        return off
    if _came_back(item, seen, seen.server):
        return Step(Act.WAIT, _S.CLAIMING, "the server was moved, and came back with pool memory", correct=False)
    return _DECISIONS[item.state, item.method](item, seen, seen.server, limits)


def _off_already(item: Mitigation, seen: Seen, server: Server) -> Step | None:
    """Return the step of a guest that is off the pool, or of another host's pool memory; None for others."""
    if server.busy:
        return None
    if not seen.holds and not seen.elsewhere and seen.all_local:
        return Step(Act.WAIT, _S.UNCLAIMING, correct=True)
    if server.host == item.host:
        return None
    if not seen.elsewhere and seen.all_local:
        # It was moved to local memory; its former host has not let go yet.
        return None if item.state is _S.RELEASING else _towards(item, _S.RELEASING)
    if item.method is MitigationMethod.MIGRATE:
        return None
    return _moved(item, server)


def _came_back(item: Mitigation, seen: Seen, server: Server) -> bool:
    """Tell whether a guest has pool memory again: Nova placed it anew meanwhile, or started it by an older claim."""
    if server.host != item.host or not seen.holds or server.busy:
        return False
    if item.state is _S.MOVING:
        return item.method is MitigationMethod.COPY and not seen.all_local
    return item.state is _S.UNCLAIMING or (item.state in (_S.REWRITING, _S.RELEASING) and not seen.all_local)


def _towards(item: Mitigation, state: MitigationState) -> Step:
    """Return the step of a mitigation that skips what is done already."""
    if item.state in (_S.CLAIMING, _S.REWRITING):
        return Step(Act.WAIT, _S.UNCLAIMING, correct=True)
    return Step(Act.WAIT, state, correct=True)


def _moved(item: Mitigation, server: Server) -> Step:
    reason = f"the server was moved to host {server.host} meanwhile and has pool memory there; mitigate it again"
    if not server.host:
        reason = "the server left its host meanwhile: it was shelved"
    if item.state is _S.UNDOING:
        return Step(Act.WAIT, _ended(item), item.reason)
    return Step(Act.WAIT, _S.FAILED, reason, correct=False)


def _ended(item: Mitigation) -> MitigationState:
    return _S.ABORTED if item.work.ending == _S.ABORTED else _S.FAILED


def _undo(reason: str, ending: str = _S.FAILED) -> Step:
    return Step(Act.WAIT, _S.UNDOING, reason, ending)


def _waits(item: Mitigation, reason: str) -> Step:
    return Step(Act.WAIT, item.state, reason)


# By copy


def _copy_claiming(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    if not seen.holds:
        return Step(Act.WAIT, _S.FAILED, "the server has no pool memory any more")
    if not seen.turn:
        return _waits(item, "it waits for its turn: [mitigation] max_per_host, max_per_rack")
    if server.busy:
        if seen.seconds > limits.idle_seconds:
            return _undo(f"Nova has worked on the server for {seen.seconds:.0f} s: {server.busy}")
        return _waits(item, f"Nova works on the server: {server.busy}")
    return Step(Act.CLAIM, _S.MOVING)


def _copy_moving(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    """What is rewritten already (`corrected`) is copied again for as long as it takes: it is not written back."""
    copy = seen.copy
    if copy is not None and copy.mine:
        if copy.state == "mitigated":
            return Step(Act.WAIT, _S.REWRITING, correct=True)
        if copy.state == "moving":
            if seen.seconds > limits.copy_seconds and not item.work.corrected:
                return _undo(f"its memory was not copied within {seen.seconds:.0f} s")
            return _waits(item, "")
        if item.work.tries > limits.retries and not item.work.corrected:
            return _undo(f"its memory was not copied in {item.work.tries} attempts: {copy.reason}")
    if seen.seconds > limits.copy_seconds and not item.work.corrected:
        return _undo(f"its memory was not copied within {seen.seconds:.0f} s: {item.reason}")
    if server.busy:
        return _waits(item, f"Nova works on the server: {server.busy}")
    return Step(Act.COPY, _S.MOVING, again=not item.work.tries or (copy is not None and copy.mine))


def _rewriting(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    del item, seen, limits
    if server.busy:
        return Step(Act.WAIT, _S.REWRITING, f"Nova works on the server: {server.busy}")
    return Step(Act.REWRITE, _S.RELEASING)


def _releasing(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    del limits
    if not seen.holds:
        return Step(Act.WAIT, _S.UNCLAIMING)
    if item.method is MitigationMethod.MIGRATE or server.host != item.host:
        return _waits(item, f"host {item.host} has not given its slices back yet")
    return Step(Act.GIVE_BACK, _S.RELEASING)


def _unclaiming(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    del limits
    if server.busy:
        return _waits(item, f"Nova works on the server: {server.busy}")
    if seen.elsewhere and server.host != item.host and not seen.all_local:
        return _moved(item, server)
    if seen.holds or seen.elsewhere:
        return _waits(item, f"host {item.host if seen.holds else server.host} has not given its slices back yet")
    # First all of its memory as local: from then on a start attaches nothing any more.
    return Step(Act.UNCLAIM, _S.DONE) if seen.all_local else Step(Act.CLAIM, _S.UNCLAIMING)


def _copy_undoing(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    del limits
    copy = seen.copy
    if copy is not None and copy.mine:
        if copy.state == "mitigated":
            return Step(Act.WAIT, _S.REWRITING, "it was too late to undo it: all its memory was local", correct=True)
        if copy.state == "moving":
            return Step(Act.STOP, _S.UNDOING, item.reason)
    if server.busy:
        return _waits(item, item.reason)
    if seen.all_local or not item.work.undone:
        # Even a claim that is right is written: what a former leader is about to write is refused from then on.
        return Step(Act.UNDO_CLAIM, _S.UNDOING, item.reason, undone=True)
    if not seen.holds:
        # It was started anew by the claim that was just undone: it is all local, and has to claim that again.
        return Step(Act.WAIT, _S.UNCLAIMING, correct=True)
    if item.work.ending == MitigationMethod.MIGRATE:
        return Step(Act.WAIT, _S.CLAIMING, item.reason, ending="", method=MitigationMethod.MIGRATE)
    return Step(Act.WAIT, _ended(item), item.reason, correct=False)


# By migration


def _migrate_claiming(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    if server.host != item.host:
        if not seen.elsewhere:
            return Step(Act.WAIT, _S.FAILED, "the server has no pool memory any more", correct=False)
        return Step(Act.WAIT, _S.CLAIMING, host=server.host)
    if (step := _copy_claiming(item, seen, server, limits)).act is not Act.CLAIM:
        return step
    # The schedulers have to know that it gets no pool memory, before Nova looks for a host.
    return Step(Act.WAIT, _S.MOVING, correct=True)


def _migrate_moving(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    if server.busy:
        return _waits(item, f"Nova works on the server: {server.busy}")
    if server.host != item.host and seen.elsewhere:
        if item.work.tries > limits.retries:
            return _undo(f"the server was moved {item.work.tries} times and got pool memory again")
        reason = f"host {server.host} gave it pool memory again: its scheduler had not heard of the mitigation"
        return Step(Act.WAIT, _S.CLAIMING, reason, host=server.host)
    if not server.running:
        return _undo("the server does not run any more; its next start goes by its claim")
    if item.work.tries > limits.retries:
        return _undo(
            f"Nova moved it to no host in {item.work.tries} attempts (last: {item.reason}); why, say `openstack server "
            "event list --long` and the log of nova-compute at its host"
        )
    pause = limits.retry_seconds if item.work.tries else limits.view_seconds
    if seen.seconds < pause * max(item.work.tries, 1):
        return _waits(item, item.reason)
    return Step(Act.MIGRATE, _S.MOVING, "Nova was asked to move it to a host with local memory", again=True)


def _migrate_undoing(item: Mitigation, seen: Seen, server: Server, limits: Limits) -> Step:
    del seen, limits
    if server.busy:
        return _waits(item, item.reason)
    return Step(Act.WAIT, _ended(item), item.reason, correct=False)


_Decision = Callable[[Mitigation, Seen, Server, Limits], Step]
_COPY, _MIGRATE = MitigationMethod.COPY, MitigationMethod.MIGRATE

_DECISIONS: dict[tuple[MitigationState, MitigationMethod], _Decision] = {
    (_S.CLAIMING, _COPY): _copy_claiming,
    (_S.MOVING, _COPY): _copy_moving,
    (_S.UNDOING, _COPY): _copy_undoing,
    (_S.CLAIMING, _MIGRATE): _migrate_claiming,
    (_S.MOVING, _MIGRATE): _migrate_moving,
    (_S.UNDOING, _MIGRATE): _migrate_undoing,
    **{(_S.REWRITING, method): _rewriting for method in MitigationMethod},
    **{(_S.RELEASING, method): _releasing for method in MitigationMethod},
    **{(_S.UNCLAIMING, method): _unclaiming for method in MitigationMethod},
}
