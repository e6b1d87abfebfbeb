"""Deliberately broken variants of mitigations. Each must be caught."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock
from uuid import uuid4

from pondstack.controller.mitigation import actor, mitigator, observer
from pondstack.controller.mitigation import claims as claiming
from pondstack.controller.mitigation.actor import Actor
from pondstack.controller.mitigation.observer import Observer
from pondstack.domain import mitigation_step
from pondstack.domain.mitigation import MitigationState
from pondstack.domain.mitigation_step import Act, Seen, Step
from pondstack.ledger.mitigations import Mitigations
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


def _decided(change: Any) -> Any:
    """Have each decision be what `change` makes of it."""
    plain = mitigation_step.decide

    def decide(item: Any, seen: Seen, limits: Any) -> Step:
        return change(plain(item, seen, limits), item, seen)  # type: ignore[no-any-return]

    return mock.patch.object(mitigator, "decide", decide)


@mutant("agents")
def claim_after_copy() -> Iterator[None]:
    """Pages are copied before their room is claimed."""
    with _decided(lambda step, _item, _seen: step._replace(act=Act.WAIT) if step.act is Act.CLAIM else step):
        with mock.patch.object(mitigation_step, "_came_back", return_value=False):
            yield


@mutant("agents")
def claim_not_moved() -> Iterator[None]:
    """At the end the pool share stays in the claim."""
    with _decided(lambda step, _item, _seen: step._replace(act=Act.WAIT) if step.act is Act.UNCLAIM else step):
        yield


@mutant("agents")
def local_share_not_claimed() -> Iterator[None]:
    """The pool share leaves the claim, and no local memory came in its place."""

    def without_pool(held: claiming.Held, guest_mib: int) -> claiming.Held:
        kept = {uuid: {k: v for k, v in amounts.items() if k == "MEMORY_MB"} for uuid, amounts in held.items()}
        return claiming.with_local({uuid: amounts for uuid, amounts in kept.items() if amounts}, guest_mib // 2)

    with mock.patch.object(claiming, "without_pool", without_pool):
        yield


@mutant("users", "stale")
def twice_per_server() -> Iterator[None]:
    """A server is mitigated as often as somebody asks."""
    plain = Mitigations._check

    def check(self: Any, tx: Any, consumer: str, *, forced: bool) -> None:
        del forced
        plain(self, tx, consumer, forced=True)

    with mock.patch.object(Mitigations, "_check", check):
        yield


@mutant("agents", "users")
def released_before_rewritten() -> Iterator[None]:
    """Slices go back while the stored domain still binds to them."""
    with _decided(lambda step, _item, _seen: step._replace(act=Act.WAIT) if step.act is Act.REWRITE else step):
        yield


@mutant("agents")
def unclaimed_before_released() -> Iterator[None]:
    """The pool share leaves the claim before the slices are back."""
    plain = Observer.look

    def look(self: Observer, item: Any, *, turn: bool = True) -> Seen:
        back = item.state in (MitigationState.RELEASING, MitigationState.UNCLAIMING)
        seen = plain(self, item, turn=turn)
        return replace(seen, holds=False, elsewhere=False) if back else seen

    with mock.patch.object(Observer, "look", look):
        yield


@mutant("aborts", "agents")
def undo_forgets_local_memory() -> Iterator[None]:
    """What is undone keeps the local memory that it claimed."""
    with mock.patch.object(Actor, "_work", {**Actor._work, Act.UNDO_CLAIM: Actor._wait}):
        with _decided(
            lambda step, item, _seen: (
                step._replace(state=mitigation_step._ended(item)) if step.act is Act.UNDO_CLAIM else step
            )
        ):
            yield


@mutant("kills", "agents")
def begins_anew() -> Iterator[None]:
    """A leader that takes over copies once more under a name of its own."""
    with ExitStack() as stack:
        for module in (actor, observer):
            stack.enter_context(mock.patch.object(module, "attempt", side_effect=lambda _item: str(uuid4())))
        yield


@mutant("users")
def while_nova_works() -> Iterator[None]:
    """Nobody asks whether Nova works on the server."""
    plain = mitigator.decide

    def decide(item: Any, seen: Seen, limits: Any) -> Step:
        idle = seen if seen.server is None else replace(seen, server=seen.server._replace(busy=""))
        return plain(item, idle, limits)

    with mock.patch.object(mitigator, "decide", decide):
        yield


@mutant("stale", "users")
def split_not_corrected() -> Iterator[None]:
    """The split of a mitigated server stays what it was."""
    with mock.patch.object(Mitigations, "_mark", return_value=None):
        yield


@mutant("losses", "aborts")
def late_copy_not_stopped() -> Iterator[None]:
    """What is undone does not tell the agent that a command which is still on its way comes too late."""
    plain = Actor._undo_claim

    def undo(self: Any, item: Any, step: Step, seen: Seen) -> Step:
        with mock.patch.object(Actor, "_stop", lambda _self, _item, step, _seen: step):
            return plain(self, item, step, seen)

    with mock.patch.object(Actor, "_work", {**Actor._work, Act.UNDO_CLAIM: undo}):
        yield
