"""RPC endpoint of the leading controller for what operators set per project (since 1.12); see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.db.store import project_settings
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import Transaction
from pondstack.rpc.controller_api import PROJECTS_VERSION


class ProjectEndpoint:
    """Errors are of pondstack.domain.errors. `changed` has the schedulers told at their next look.

    Under the leader's epoch and journaled, so that a request that is late or repeated does not undo a later one.
    """

    target = oslo_messaging.Target(version=PROJECTS_VERSION)

    def __init__(self, *, ledger: Ledger, changed: Callable[[], None], gate: Gate) -> None:
        self.gate = gate
        self._ledger, self._changed = ledger, changed

    @gated
    def set_project(
        self, _context: Any, *, project_id: str, changes: dict[str, Any], operation_id: str
    ) -> dict[str, Any]:
        """Set, or unset (None), what `changes` names."""

        def work(tx: Transaction) -> dict[str, Any]:
            return project_settings.change(tx, project_id, changes).to_wire()

        arguments = {"project_id": project_id, "changes": changes}
        effect = self._ledger.once(operation_id, "set_project", arguments, work)
        self._changed()
        return {name: effect[name] for name in project_settings.FIELDS}
