"""Clients over the simulated bus: the real ones, with the way of a single call replaced."""

from random import Random
from typing import Any

from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.node_api import NodeAPI
from pondstack.rpc.retry import RetryingCaller, RetryPolicy
from pondstack.rpc.targets import CONTROLLER_TOPIC, NODE_TOPIC

from .fault_links import Moments
from .kernel import Scheduler
from .network import Network

POLICY = RetryPolicy(first_seconds=0.5, longest_seconds=1.0, longest_pause_seconds=0.3)


class SimControllerAPI(ControllerAPI):
    """The controller's client."""

    def __init__(
        self, network: Network, moments: Moments, scheduler: Scheduler, timeout_seconds: float, rng: Random
    ) -> None:
        self._network = network
        self._moments = moments
        self._timeout = timeout_seconds
        self._retrying = RetryingCaller(POLICY, clock=lambda: scheduler.now, sleep=scheduler.sleep, uniform=rng.uniform)
        self._leader, self._nodes = CONTROLLER_TOPIC, NODE_TOPIC

    def _call_retrying(self, client: Any, method: str, timeout_seconds: float | None, arguments: dict[str, Any]) -> Any:
        def attempt(seconds: float) -> Any:
            self._moments.pass_by("rpc")
            return self._network.call(client, method, arguments, seconds)

        return self._retrying.call(attempt, timeout_seconds or self._timeout)

    def _lent(self, method: str, **arguments: Any) -> Any:
        return self._call_retrying(self._leader, method, None, arguments)

    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        del since
        return self._lent(name, **arguments)


class SimNodeAPI(NodeAPI):
    """A controller's way to itself."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self._topic = f"{NODE_TOPIC}.{name}"

    def ping(self, timeout_seconds: float) -> None:
        """Call and wait for the answer."""
        self._network.call(self._topic, "ping", {}, timeout_seconds)


class SimAgentAPI(AgentAPI):
    """The agents' client."""

    def __init__(self, network: Network, moments: Moments, timeout_seconds: float) -> None:
        self._network = network
        self._moments = moments
        self._timeout = timeout_seconds

    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        del version
        self._moments.pass_by("rpc")
        return self._network.call(host, method, arguments, self._timeout)
