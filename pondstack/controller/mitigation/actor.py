"""Does what a mitigation's next step says, at Placement, at the agent, or at Nova.

Commands to an agent carry the epoch, changes of a claim rest on its generation: what a former leader began comes too
late, or is what this one would do.
"""

from collections.abc import Callable

import oslo_messaging

from pondstack.clients.nova import Nova
from pondstack.clients.placement import Placement
from pondstack.controller.mitigation import claims
from pondstack.controller.mitigation.observer import CANNOT, attempt
from pondstack.controller.pool.host_slices import unanswered
from pondstack.domain.errors import (
    BadRequest,
    Conflict,
    HostUnusable,
    InUse,
    NoLocalRoom,
    NotFound,
    StaleEpoch,
    Unavailable,
)
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState
from pondstack.domain.mitigation_step import Act, Seen, Step
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI

_S = MitigationState
NO_ROOM = "its host has no local memory for it by Placement; delete or move guests, or mitigate it by migration"


class Actor:
    """One leader's."""

    def __init__(self, ledger: Ledger, nova: Nova, placement: Placement, agents: AgentAPI) -> None:
        self._ledger, self._nova, self._placement, self._agents = ledger, nova, placement, agents

    def act(self, item: Mitigation, step: Step, seen: Seen) -> Step:
        """Do it, and return the step as it turned out. Raises Unavailable, and Conflict: look again later."""
        return self._work[step.act](self, item, step, seen)

    def _wait(self, _item: Mitigation, step: Step, _seen: Seen) -> Step:
        return step

    def _claim(self, item: Mitigation, step: Step, seen: Seen) -> Step:
        if self._resize(item, seen, lambda held: claims.with_local(held, item.work.guest_mib)):
            return step
        if item.state is _S.UNCLAIMING:
            return step._replace(reason=NO_ROOM)
        if item.work.either:
            return Step(Act.WAIT, _S.CLAIMING, NO_ROOM, method=MitigationMethod.MIGRATE)
        return Step(Act.WAIT, _S.FAILED, NO_ROOM)

    def _undo_claim(self, item: Mitigation, step: Step, seen: Seen) -> Step:
        self._stop(item, step, seen)  # commands of former leaders come too late from now on
        local_mib = item.work.guest_mib - item.pool_mib
        if self._resize(item, seen, lambda held: claims.with_local(held, local_mib), force=True):
            return step
        return step._replace(state=item.state, reason="Placement refuses to take local memory out of the claim")

    def _unclaim(self, item: Mitigation, step: Step, seen: Seen) -> Step:
        if self._resize(item, seen, lambda held: claims.without_pool(held, item.work.guest_mib)):
            return step
        return step._replace(state=item.state, reason=NO_ROOM)

    def _resize(
        self, item: Mitigation, seen: Seen, change: Callable[[claims.Held], claims.Held], *, force: bool = False
    ) -> bool:
        def unless_changed(held: claims.Held) -> claims.Held:
            if held != seen.claimed:
                raise Conflict("the server's claim in Placement has changed meanwhile")
            return change(held)

        return self._placement.resize_claim(item.consumer_uuid, unless_changed, still=self._ledger.renew, force=force)

    def _copy(self, item: Mitigation, step: Step, _seen: Seen) -> Step:
        try:
            self._agents.mitigate(
                item.host,
                epoch=self._ledger.epoch,
                operation_id=attempt(item),
                consumer_uuid=item.consumer_uuid,
                hold=True,
            )
        except oslo_messaging.MessagingException as error:
            failure = unanswered(item.host, error, CANNOT)
            if isinstance(failure, Unavailable):
                raise failure from error
            return _refused(item, failure.message)
        except StaleEpoch:
            raise
        except (NoLocalRoom, BadRequest, HostUnusable) as error:
            if item.work.either and not item.work.corrected:
                return Step(Act.WAIT, _S.UNDOING, error.message, ending=MitigationMethod.MIGRATE)
            return _refused(item, error.message)
        except (NotFound, Conflict) as error:
            return _refused(item, error.message)
        return step

    def _stop(self, item: Mitigation, step: Step, _seen: Seen) -> Step:
        try:
            self._agents.abort_mitigation(
                item.host, epoch=self._ledger.epoch, operation_id=attempt(item), consumer_uuid=item.consumer_uuid
            )
        except oslo_messaging.MessagingException as error:
            raise unanswered(item.host, error, CANNOT) from error
        except StaleEpoch:
            raise
        except (NotFound, Conflict):
            pass  # it has not begun, or all has moved: the next look tells
        return step

    def _rewrite(self, item: Mitigation, step: Step, _seen: Seen) -> Step:
        try:
            self._agents.rewrite_domain(
                item.host, epoch=self._ledger.epoch, operation_id=attempt(item), consumer_uuid=item.consumer_uuid
            )
        except oslo_messaging.MessagingException as error:
            raise unanswered(item.host, error, "rewrite a guest's stored domain") from error
        return step

    def _give_back(self, item: Mitigation, step: Step, _seen: Seen) -> Step:
        try:
            gone = self._agents.release_mitigated(
                item.host, epoch=self._ledger.epoch, operation_id=attempt(item), consumer_uuid=item.consumer_uuid
            )
        except oslo_messaging.MessagingException as error:
            raise unanswered(item.host, error, "give a mitigated guest's slices back") from error
        except InUse as error:
            return Step(Act.WAIT, _S.MOVING, error.message, again=True)
        return step if gone else step._replace(reason=f"host {item.host} takes the slices offline")

    def _migrate(self, item: Mitigation, step: Step, _seen: Seen) -> Step:
        try:
            self._nova.live_migrate(item.consumer_uuid)
        except (BadRequest, Conflict, NotFound) as error:
            return step._replace(reason=error.message)
        return step

    _work: dict[Act, Callable[["Actor", Mitigation, Step, Seen], Step]] = {
        Act.WAIT: _wait,
        Act.CLAIM: _claim,
        Act.UNDO_CLAIM: _undo_claim,
        Act.UNCLAIM: _unclaim,
        Act.COPY: _copy,
        Act.STOP: _stop,
        Act.REWRITE: _rewrite,
        Act.GIVE_BACK: _give_back,
        Act.MIGRATE: _migrate,
    }


def _refused(item: Mitigation, reason: str) -> Step:
    if item.work.corrected:
        return Step(Act.WAIT, item.state, reason)
    return Step(Act.WAIT, _S.UNDOING, f"host {item.host} does not copy its memory: {reason}", ending=_S.FAILED)
