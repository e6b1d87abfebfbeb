"""What the ledger writes of hosts: their reports, whether they may have memory, their provider in Placement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pondstack.domain.errors import (
    Conflict,
    DeviceFailed,
    GenerationConflict,
    HostUnusable,
    NotFound,
    PurposeConflict,
)
from pondstack.domain.model import PoolState
from pondstack.domain.purpose import Purpose
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import HostEntry, PoolEntry, Store, Transaction
from pondstack.ledger.transactions import Transactions

MOST_OF_A_HOSTS_REASON = 255
MOST_NAMED = 5
"""How many allocations a refusal names."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a report changed. `accepted` False: it came late and changed nothing. `tiering_on`: the operator's order."""

    accepted: bool
    reach_changed: bool = False
    tiering_on: bool | None = None


class Hosts:
    """All hosts whose agents have reported. `down_seconds`: silence after which a host's agent counts as gone."""

    def __init__(self, transactions: Transactions, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._down = down_seconds

    def heartbeat(self, report: Mapping[str, Any]) -> Receipt:
        """Take a report (pondstack.rpc.wire.Report on the wire) over as the host's state; the first registers the host.

        A lower sequence is late, unless the host has been silent for so long that its agent must have started anew.
        """
        return self._transactions.write(lambda tx: self._take_report(tx, report))

    def _take_report(self, tx: Transaction, report: Mapping[str, Any]) -> Receipt:
        name = report["host"]
        known = self._store.hosts.get(tx, name)
        if known is not None and report["sequence"] < known.sequence and known.silent_seconds <= self._down:
            return Receipt(accepted=False, tiering_on=known.tiering_on)
        self._store.hosts.report(tx, name, _reported(report))
        reach_changed = self._store.hosts.set_reach(tx, name, report["pools"])
        return Receipt(accepted=True, reach_changed=reach_changed, tiering_on=known.tiering_on if known else None)

    def set(
        self, name: str, enabled: bool, reason: str, generation: int | None, operation_id: str | None = None
    ) -> int:
        """Enable or disable a host; returns its new generation. Raises NotFound, GenerationConflict.

        By its operation id (None: nobody will repeat it) a repetition gets the first answer, not a conflict with it.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            return {"generation": self._set(tx, name, enabled, reason, generation), MOVES: []}

        arguments = {"name": name, "enabled": enabled, "reason": reason, "generation": generation}
        effect = self._transactions.once(operation_id or str(uuid4()), "set_host", arguments, work)
        now: int = effect["generation"]
        return now

    def _set(self, tx: Transaction, name: str, enabled: bool, reason: str, generation: int | None) -> int:
        known = known_host(self._store, tx, name)
        check_generation(known, generation)
        reason = "" if enabled else reason[:MOST_OF_A_HOSTS_REASON]
        if (known.enabled, known.disabled_reason) == (enabled, reason):
            return known.generation
        values = {"enabled": enabled, "disabled_reason": reason, "generation": known.generation + 1}
        self._store.hosts.change(tx, name, values)
        return known.generation + 1

    def check_tiering(self, name: str, on: bool | None, generation: int | None) -> None:
        """Raise NotFound, GenerationConflict, and Conflict where demoted pages would take guests' memory."""
        self._transactions.read(lambda tx: self._tierable(tx, name, on, generation))

    def set_tiering(self, name: str, on: bool | None, generation: int | None, operation_id: str | None = None) -> int:
        """Write down whether a host's kernel is to tier, None: as its agent is configured; returns its generation.

        Raises as check_tiering.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            known = self._tierable(tx, name, on, generation)
            if known.tiering_on is on:
                return {"generation": known.generation, MOVES: []}
            self._store.hosts.change(tx, name, {"tiering_on": on, "generation": known.generation + 1})
            return {"generation": known.generation + 1, MOVES: []}

        arguments = {"name": name, "on": on, "generation": generation}
        effect = self._transactions.once(operation_id or str(uuid4()), "set_tiering", arguments, work)
        now: int = effect["generation"]
        return now

    def _tierable(self, tx: Transaction, name: str, on: bool | None, generation: int | None) -> HostEntry:
        known = known_host(self._store, tx, name)
        check_generation(known, generation)
        if not on:
            return known
        tiers = [item for item in self._store.holdings.find(tx) if item.host == name and item.purpose is Purpose.TIER]
        if not any(item.wanted for item in tiers):
            raise Conflict(
                f"host {name} has no slices for tiering, so its kernel would demote pages to guests' memory; give it "
                "some first (`openstack memory host set --tier-slices N`)"
            )
        guests = self._store.allocations.on_host(tx, name, Purpose.GUEST)
        if guests:
            raise PurposeConflict(
                f"guests on host {name} have pool memory (allocations {', '.join(guests[:MOST_NAMED])}), and its "
                "kernel would demote pages there, too; move these guests away first"
            )
        return known

    def is_fenced(self, name: str) -> bool:
        """Return whether an operator has said that a host is dead; False for one that is not known."""
        known = self._transactions.read(lambda tx: self._store.hosts.get(tx, name))
        return known is not None and known.fenced is not None

    def set_provider(self, name: str, provider_uuid: str) -> None:
        """Remember the UUID of a host's Placement provider."""
        self._transactions.write(lambda tx: self._store.hosts.change(tx, name, {"provider_uuid": provider_uuid}))


def known_host(store: Store, tx: Transaction, name: str) -> HostEntry:
    """Return a host's row; raises NotFound."""
    known = store.hosts.get(tx, name)
    if known is None:
        raise NotFound(f"there is no host {name}; its agent has never reported")
    return known


def check_generation(host: HostEntry, generation: int | None, advice: str = "read it again") -> None:
    """Raise GenerationConflict, with advice, when a host is not of the generation that a request means; None: any."""
    if generation is not None and generation != host.generation:
        raise GenerationConflict(f"host {host.name} is at generation {host.generation}, not {generation}; {advice}")


def usable_host(store: Store, tx: Transaction, name: str) -> HostEntry:
    """Return a host that may have memory; raises HostUnusable."""
    return _usable(name, store.hosts.get(tx, name))


def usable_pool(store: Store, tx: Transaction, uuid: str, host: str) -> PoolEntry:
    """Return a pool of which the host may have slices; raises NotFound, HostUnusable, DeviceFailed."""
    pool, entry, reached = store.pools.reach(tx, uuid, host)
    if pool is None:
        raise NotFound(f"there is no pool {uuid}; list the pools")
    _usable(host, entry)
    if not reached:
        raise HostUnusable(f"host {host} does not reach pool {pool.name}; its agent reports other pools")
    if pool.state is not PoolState.UP:
        raise DeviceFailed(f"pool {pool.name} has failed; look at the device")
    return pool


def _usable(name: str, host: HostEntry | None) -> HostEntry:
    if host is None:
        raise HostUnusable(f"host {name} is unknown: its agent has never reported; look at its log")
    if not host.enabled:
        raise HostUnusable(f"host {name} is disabled ({host.disabled_reason}); enable it first")
    if host.fenced is not None:
        raise HostUnusable(f"host {name} is fenced ({host.fenced}); unfence it once it is in order")
    return host


def _reported(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "agent_version": report["version"][:64],
        "agent_epoch": report["epoch"],
        "sequence": report["sequence"],
        "attached": list(report["attached"]),
        "stuck": dict(report.get("stuck") or {}),
        "tiering": dict(report.get("tiering") or {}),
        "lending": report.get("lending"),
        "borrowed": report.get("borrowed"),
        "hands_over": list(report.get("hands_over") or ()),
    }
