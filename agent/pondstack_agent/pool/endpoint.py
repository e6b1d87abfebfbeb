"""RPC endpoint of pondstack-agent: pondstack.rpc.agent_api on the wire, AgentManager behind it."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.domain.errors import PondError
from pondstack.rpc.transport import RPC_VERSION
from pondstack_agent.pool.manager import AgentManager

expected: Callable[[Callable[..., Any]], Callable[..., Any]] = oslo_messaging.expected_exceptions(PondError)
"""Our own errors are answers: they cross RPC without a traceback in the agent's log."""


class AgentEndpoint:
    """The methods that others may call. Arguments come by name, as AgentAPI sends them."""

    target = oslo_messaging.Target(version=RPC_VERSION)

    def __init__(self, manager: AgentManager) -> None:
        self._manager = manager

    @expected
    def attach(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See AgentManager.attach."""
        return self._manager.attach(**arguments).to_wire()

    @expected
    def detach(self, _context: Any, **arguments: Any) -> bool:
        """See AgentManager.detach."""
        return self._manager.detach(**arguments)

    @expected
    def get_attachment(self, _context: Any, **arguments: Any) -> dict[str, Any] | None:
        """See AgentManager.get_attachment."""
        found = self._manager.get_attachment(**arguments)
        return found.to_wire() if found else None

    @expected
    def offline(self, _context: Any, **arguments: Any) -> bool:
        """See AgentManager.offline."""
        return self._manager.offline(**arguments)

    @expected
    def report(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See AgentManager.report."""
        return self._manager.report(**arguments).to_wire()

    @expected
    def mitigate(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See AgentManager.mitigate."""
        return self._manager.mitigate(**arguments).to_wire()

    @expected
    def get_mitigation(self, _context: Any, **arguments: Any) -> dict[str, Any] | None:
        """See AgentManager.get_mitigation."""
        found = self._manager.get_mitigation(**arguments)
        return found.to_wire() if found else None

    @expected
    def abort_mitigation(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See AgentManager.abort_mitigation."""
        return self._manager.abort_mitigation(**arguments).to_wire()
