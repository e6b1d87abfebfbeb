"""Looks at a host that is put to sleep, asleep or woken: what its present state needs, and no more."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid5

import oslo_messaging

from pondstack.clients.bmc import Bmc
from pondstack.clients.nova import Nova
from pondstack.clients.placement import Placement
from pondstack.db.read.reader import SqlReader
from pondstack.domain.admission import LENT_CLASS, consumers
from pondstack.domain.causes import Cause
from pondstack.domain.errors import PondError
from pondstack.domain.escrow import Link, wants_escrow
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.host_sleep_step import PowerWord, Seen, Service
from pondstack.domain.lending import Buffer
from pondstack.domain.power import mode_of
from pondstack.domain.rack import RackView
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.waker_api import WakerAPI

_S = SleepState


def operation(item: HostSleep, what: str) -> str:
    """Return the operation id of one of a sleep's commands: the next leader repeats it."""
    return str(uuid5(UUID(item.uuid), what))


def suspension(item: HostSleep) -> str:
    """Return the operation id by which a host is told to sleep; one that is to sleep deeper is told anew."""
    return operation(item, f"suspend by {item.driver}" if item.is_deeper else "suspend")


class Observer:
    """One leader's. `agents`, `wakers`: with little patience. `escrows`: whether keys go to an escrow at all."""

    def __init__(
        self,
        ledger: Ledger,
        reader: SqlReader,
        nova: Nova,
        placement: Placement,
        agents: AgentAPI,
        wakers: WakerAPI,
        bmcs: Mapping[str, Bmc],
        *,
        escrows: bool,
        down_seconds: float,
    ) -> None:
        self._ledger, self._reader, self._nova, self._placement = ledger, reader, nova, placement
        self._agents, self._wakers, self._bmcs = agents, wakers, bmcs
        self._escrows, self._down = escrows, down_seconds

    def look(self, item: HostSleep) -> Seen:
        """Return what is seen of a host; raises Unavailable."""
        return self._looks[item.state](self, item)

    def _nova_side(self, item: HostSleep) -> Seen:
        found = self._nova.compute_service(item.host)
        if found is None:
            return Seen(item.state_seconds)
        service = Service(found.enabled, found.disabled_reason)
        return Seen(item.state_seconds, service, self.servers(item.host, found.servers))

    def servers(self, host: str, of_nova: tuple[str, ...]) -> tuple[str, ...]:
        """Return what is on a host by Nova, and what claims anything of it in Placement, ours apart."""
        provider = self._placement.host_provider(host)
        held = self._placement.allocations_of(provider) if provider else None
        return tuple(sorted({*of_nova, *(held or {})} - set(consumers(host))))

    def _lending(self, item: HostSleep) -> Seen:
        found = self._nova.compute_service(item.host)
        mine, mib = self._lent(item.host)
        lend = self._ledger.lends.of_host(item.host)
        return Seen(
            item.state_seconds,
            service=Service(found.enabled, found.disabled_reason) if found else None,
            servers=self.servers(item.host, found.servers if found else ()),
            lend=None if lend is None else lend.reason,
            lend_ended=self._ledger.lends.ended(operation(item, "lend")),
            lent_mib=mib,
            incarnation=mine[0].incarnation if mine else "",
            waiting_keys=self._waiting_keys(item.host, mine) if self._escrows else 0,
        )

    def _lent(self, host: str) -> tuple[list[Buffer], int]:
        mine = [item for item in self._ledger.buffers.find(host) if item.cause is not Cause.LENDER_LOST]
        return mine, sum(item.size_mib for item in mine)

    def _waiting_keys(self, host: str, mine: list[Buffer]) -> int:
        """Return how many free buffers lack a key of a host that could borrow them."""
        links = {name: held for name, held in self._ledger.escrow.links().items() if name != host}
        wanted = [item for item in mine if wants_escrow(item)]
        if not links or not wanted:
            return 0
        incarnation = wanted[0].incarnation
        linked = [name for name, held in links.items() if (host, incarnation) in held]
        if not linked:
            return len(wanted)
        known = {(key.borrower, key.index): key.generation for key in self._ledger.escrow.of_lender(incarnation)}
        return sum(any(known.get((name, item.index)) != item.generation for name in linked) for item in wanted)

    def _suspending(self, item: HostSleep) -> Seen:
        return Seen(
            item.state_seconds,
            power=self._power(item),
            waker=mode_of(item.driver).wakes_by_bus and self._waker_answers(item),
            report_age=self._reader.host(item.host).heartbeat_age_seconds,
        )

    def _power(self, item: HostSleep) -> PowerWord | None:
        """Return what the agent says of its host, None: it is silent."""
        try:
            told = self._agents.get_power(item.host)
        except oslo_messaging.MessagingException:
            return None
        return _word(told, item)

    def _waker_answers(self, item: HostSleep) -> bool:
        """Return whether the waker says that its host sleeps by the order of this sleep."""
        try:
            word = _word(self._wakers.told(item.host), item)
        except (PondError, oslo_messaging.MessagingException):
            return False
        return word.mine and word.state == "entering"

    def _asleep(self, item: HostSleep) -> Seen:
        view = self._reader.rack()
        report = view.hosts.get(item.host)
        silent_for = "" if report is None else self._lost_by(item, view)
        if silent_for and mode_of(item.driver).wakes_by_bus and self._waker_answers(item):
            silent_for = ""  # the host lives: it is the borrower, or its network
        age = report.age_seconds if report else item.state_seconds
        return Seen(item.state_seconds, report_age=age, silent_for=silent_for)

    def _lost_by(self, item: HostSleep, view: RackView) -> str:
        """Return a borrower that has lost the sleeper, where nobody else says that it is linked to it, else ""."""
        links = {
            name: {(lender, incarnation) for lender, incarnation in (report.borrowed or {}).get("links") or ()}
            for name, report in view.hosts.items()
            if name != item.host
            and report.age_seconds <= self._down
            and (report.borrowed or {}).get("links") is not None
        }
        link: Link = (item.host, item.work.incarnation)
        if any(link in held for held in links.values()):
            return ""
        users = {buffer.host or buffer.promised_to or "" for buffer in self._lent(item.host)[0]}
        return next(iter(sorted(users & links.keys())), "")

    def _waking(self, item: HostSleep) -> Seen:
        bmc = self._bmcs.get(item.host)
        can_reset = bmc is not None and bmc.resets
        return Seen(item.state_seconds, power=self._power(item), can_reset=can_reset)

    def _reclaiming(self, item: HostSleep) -> Seen:
        _, mib = self._lent(item.host)
        lend = self._ledger.lends.of_host(item.host)
        provider = self._placement.host_provider(item.host)
        record = self._placement.inventories(provider).get(LENT_CLASS) if provider else None
        reserved = record.total if record is not None else 0
        return Seen(item.state_seconds, lend=None if lend is None else lend.reason, lent_mib=mib, reserved_mib=reserved)

    def _lost(self, item: HostSleep) -> Seen:
        return Seen(item.state_seconds)

    _looks: Mapping[SleepState, Callable[["Observer", HostSleep], Seen]] = {
        _S.DISABLING: _nova_side,
        _S.LENDING: _lending,
        _S.SUSPENDING: _suspending,
        _S.ASLEEP: _asleep,
        _S.WAKING: _waking,
        _S.RECLAIMING: _reclaiming,
        _S.ENABLING: _nova_side,
        _S.LOST: _lost,
    }


def _word(told: Mapping[str, Any], item: HostSleep) -> PowerWord:
    return PowerWord(str(told["state"]), str(told["reason"]), told["operation_id"] == suspension(item))
