"""Writes a replay's log: hosts and pools as they are before it, pools while it goes on, and where each server went."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.agreement.decision import decisions
from bench.agreement.log import Host, Log, Look, Placement
from bench.player import Outcome
from pondstack.domain.sizing import STATIC_AUTO_PERCENT
from pondstack.domain.states import SliceState
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.cloud_client import Cloud


class Recorder:
    """Looks at hosts when it is made, and at pools whenever it is told to; thread-safe."""

    def __init__(self, cloud: Cloud, hosts: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        """`hosts`: those that the replay may use, name to provider."""
        self._cloud, self._clock, self._begun = cloud, clock, clock()
        self._lock = threading.Lock()
        self._looks: list[Look] = []
        self._names = {provider: name for name, provider in hosts.items()}
        self.look()
        reach = {host: str(pool["name"]) for pool in cloud.pools() for host in pool["hosts"]}
        self._hosts = [self._host(name, provider, reach.get(name, "")) for name, provider in sorted(hosts.items())]

    def _host(self, name: str, provider: str, pool: str) -> Host:
        free = self._cloud.free(provider)
        return Host(name, free["VCPU"], free["MEMORY_MB"], pool)

    def look(self) -> None:
        """Note what the pools have now; raises ClientException."""
        at = self._clock() - self._begun
        looks = [_look(at, pool) for pool in self._cloud.pools()]
        with self._lock:
            self._looks += looks

    def place(self, server: str) -> tuple[str, int]:
        """Return a server's host and its pool memory, as Placement has them. Raises ClientException."""
        claimed = self._cloud.claimed(server)
        pool_mib = sum(item.get(RESOURCE_CLASS, 0) for item in claimed.values())
        return next((self._names[provider] for provider in claimed if provider in self._names), ""), pool_mib

    def log(
        self, about: str, outcomes: Sequence[Outcome], source: Callable[[str], str | None], told: Iterable[str]
    ) -> Log:
        """Return the log of a replay that is over.

        `source`: returns that of a server's split. `told`: the lines of nova-scheduler's own log.
        """
        self.look()
        found = [self._placement(number, item, source) for number, item in enumerate(outcomes) if item.seen is not None]
        found.sort(key=lambda item: item.asked)
        looks = sorted(self._looks, key=lambda look: look.at)
        return Log(about, STATIC_AUTO_PERCENT, self._hosts, looks, found, decisions(told))

    def _placement(self, number: int, item: Outcome, source: Callable[[str], str | None]) -> Placement:
        def since(moment: float | None) -> float | None:
            return None if moment is None else round(moment - self._begun, 3)

        return Placement(
            number=number,
            server=item.server,
            vcpus=item.request.vcpus,
            memory_mib=item.request.memory_mib,
            asked=since(item.asked) or 0.0,
            seen=since(item.seen) or 0.0,
            leaving=since(item.leaving),
            gone=since(item.gone),
            host=item.host,
            pool_mib=item.pool_mib,
            source=source(item.server) or "",
            rejected=item.rejected,
            reason=item.reason,
        )


def _look(at: float, pool: Mapping[str, Any]) -> Look:
    buffer = pool["free_buffer"]
    seconds = float(buffer["give_back_seconds"] or 0.0)
    free = int(pool["slices"][SliceState.FREE])
    returning = sum(int(pool["slices"][state]) for state in (SliceState.RELEASING, SliceState.SANITIZING))
    return Look(
        round(at, 3), str(pool["name"]), int(pool["slice_mib"]), free, returning, int(buffer["slices"]), seconds
    )
