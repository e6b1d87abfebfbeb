"""Decides the plans that were asked for: reads their inputs, calls the pure decision, writes down what it came to."""

from dataclasses import replace
from typing import Any

from oslo_log import log

from pondstack.consolidation.decision.decider import check, drain
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import VmView
from pondstack.controller.consolidation.candidates import Candidates
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.controller.consolidation.unplaced import view
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, PondError
from pondstack.domain.plan import Action, ActionKind, Effect, Plan, PlanKind, PlanState
from pondstack.ledger.plans import Overtaken, Plans

LOG = log.getLogger(__name__)


class Decisions:
    """One leader's."""

    def __init__(self, plans: Plans, inputs: Inputs, candidates: Candidates) -> None:
        self._plans, self._inputs, self._candidates = plans, inputs, candidates
        self._ways = {
            PlanKind.CONSOLIDATE: self._consolidate,
            PlanKind.DRAIN: self._drain,
            PlanKind.RESTORE: self._restore,
        }

    def decide(self, plan: Plan) -> None:
        """Take a plan from DECIDING to PROPOSED, or RUNNING; it waits while its inputs cannot be read."""
        try:
            self._decide(plan)
        except NotLeader:
            raise
        except Overtaken as error:
            LOG.debug("Plan %s is not decided any more: %s", plan.uuid, error)
        except (BadRequest, Conflict, NotFound) as error:
            self._plans.advance(plan, PlanState.FAILED, error.message)
        except PondError as error:
            self._plans.advance(plan, plan.state, f"its inputs cannot be read: {error.message}")

    def _decide(self, plan: Plan) -> None:
        actions, effect, inputs, left_out = self._ways[plan.kind](plan)
        after = self._plans.decided(plan, actions, effect, inputs=inputs, left_out=left_out)
        LOG.info("Plan %s (%s) is %s: %d actions", plan.uuid, plan.kind, after.state, len(actions))

    def _consolidate(self, plan: Plan) -> tuple[tuple[Action, ...], Effect, dict[str, Any], dict[str, str]]:
        settings = Settings.from_record(plan.settings)
        check(settings)
        snapshot, inputs = self._inputs.read()
        if plan.unplaced:
            snapshot = replace(snapshot, unplaced=tuple(map(view, plan.unplaced)))
        found = self._candidates.decide(snapshot, settings)
        return found.actions, found.effect, inputs, dict(found.left_out)

    def _drain(self, plan: Plan) -> tuple[tuple[Action, ...], Effect, dict[str, Any], dict[str, str]]:
        service, servers = self._inputs.servers_of(plan.target)
        if service is None:
            raise NotFound(f"Nova knows no hypervisor {plan.target}")
        moves = self._inputs.live_moves()
        stays = {item.uuid: "it is not running, and stays" for item in servers if not item.running}
        for item in servers:
            if item.running and (reason := moves.why_it_stays(item.uuid, item.host, item.specs)):
                stays[item.uuid] = reason
        runs = [VmView(item.uuid, item.host, 0, {}) for item in servers if item.uuid not in stays]
        actions = drain(plan.target, runs)
        effect = Effect(hosts_emptied=int(not stays), migrations=len(runs))
        return actions, effect, {"servers": len(servers)}, stays

    def _restore(self, plan: Plan) -> tuple[tuple[Action, ...], Effect, dict[str, Any], dict[str, str]]:
        actions = (Action(1, ActionKind.ENABLE, plan.target, plan.target),)
        return actions, Effect(), {}, {}
