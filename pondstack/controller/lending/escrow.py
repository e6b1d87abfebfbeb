"""Fills the escrow of hosts that are to sleep, and empties it when they are awake (pondstack.domain.escrow).

All of it compares states: what is missing is made in the next round, as long as the lender answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import oslo_messaging
from oslo_log import log

from pondstack.controller.lending.sealing import EscrowSealer
from pondstack.domain.errors import NotLeader, PondError, Unavailable
from pondstack.domain.escrow import EscrowedKey, Link, wants_escrow
from pondstack.domain.lending import Buffer
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI

LOG = log.getLogger(__name__)

Revoke = Callable[[Sequence[Buffer]], set[int]]
"""Has a lender end all keys of its buffers so far; returns which have none now."""


class EscrowKeeper:
    """The escrow of all lenders, for one leader and one thread. `sealer` None: no sealing key, and no escrow."""

    def __init__(self, ledger: Ledger, agents: AgentLendingAPI, sealer: EscrowSealer | None, revoke: Revoke) -> None:
        self._ledger, self._agents, self._sealer, self._revoke = ledger, agents, sealer, revoke
        self._swept = self._resealed = False

    @property
    def sealing_keys(self) -> frozenset[str]:
        """The names of the sealing keys that open here."""
        return frozenset() if self._sealer is None else self._sealer.names

    def tidy(self) -> None:
        """Once a leader: forget keys of buffers that are gone, and seal anew what an older sealing key has sealed."""
        if not self._swept:
            self._ledger.escrow.remove_orphans()
            self._swept = True
        if self._sealer is not None and not self._resealed:
            self._resealed = not self._reseal(self._sealer)

    def _reseal(self, sealer: EscrowSealer) -> bool:
        """Seal some keys anew; returns whether there may be more."""
        old = self._ledger.escrow.sealed_otherwise(sealer.name)
        try:
            new = sealer.reseal(old)
        except PondError as error:
            LOG.error("Keys in escrow are not sealed anew: %s", error)
            return False
        if len(new) < len(old):
            LOG.error("Keys in escrow are sealed with keys that are not in [controller] sealing_keys_file any more")
        return bool(new and self._ledger.escrow.reseal(new))

    def work(self, items: Iterable[Buffer]) -> list[list[Buffer]]:
        """Return the buffers whose keys belong in escrow, by lender, of those that may answer: who sleeps is silent."""
        if self._sealer is None:
            return []
        found: dict[tuple[str, str], list[Buffer]] = {}
        for item in items:
            if wants_escrow(item):
                found.setdefault((item.lender, item.incarnation), []).append(item)
        silent = self._ledger.escrow.silent() if found else set()
        return [mine for (lender, _), mine in sorted(found.items()) if lender not in silent]

    def fill(self, items: Sequence[Buffer]) -> None:
        """Have a lender make the keys that are missing, and borrowers connect to it, while it is awake."""
        lender, incarnation = items[0].lender, items[0].incarnation
        links = {host: mine for host, mine in self._ledger.escrow.links().items() if host != lender}
        linked = [host for host in sorted(links) if self._is_linked(host, links[host], lender, incarnation)]
        if not linked:
            return
        if fresh := [item for item in items if not item.escrowed]:
            self._ledger.escrow.begin(lender, incarnation, self._revoke(fresh))
            items = [item for item in self._ledger.buffers.find(lender) if item.incarnation == incarnation]
        open_ = [item for item in items if item.escrowed and wants_escrow(item)]
        known = {(key.borrower, key.index): key.generation for key in self._ledger.escrow.of_lender(incarnation)}
        for host in linked:
            if missing := [item for item in open_ if known.get((host, item.index)) != item.generation]:
                self._deposit(host, missing)

    def disclosed(self, borrower: str, items: Sequence[Buffer]) -> dict[str, Any]:
        """Return the keys of one lender's buffers that a borrower got, and what it connects with; raises Unavailable.

        As the lender's export answers them.
        """
        if self._sealer is None:
            raise Unavailable("keys are in escrow, and this controller has no [controller] sealing_keys_file")
        incarnation = items[0].incarnation
        found = self._ledger.escrow.disclosed(borrower, incarnation, [item.index for item in items])
        opened = {key.index: self._sealer.open(key) for key in found}
        if missing := [item.name for item in items if item.index not in opened]:
            raise Unavailable(f"there is no key of {missing[0]} in escrow any more: borrow again")
        tickets = [content["ticket"] for content in opened.values()]
        keys = {str(index): content["key"] for index, content in opened.items()}
        return {"incarnation": incarnation, "ticket": tickets[0], "keys": keys}

    def _is_linked(self, host: str, links: frozenset[Link], lender: str, incarnation: str) -> bool:
        if (lender, incarnation) in links:
            return True
        try:
            ticket = self._escrow(lender, [], host, incarnation, {})["ticket"]
            return self._agents.connect(
                host, epoch=self._ledger.epoch, lender=lender, incarnation=incarnation, ticket=ticket
            )
        except NotLeader:
            raise
        except (PondError, oslo_messaging.MessagingTimeout) as error:
            LOG.debug("Host %s is not linked to lender %s: %s", host, lender, error)
            return False

    def _deposit(self, borrower: str, items: Sequence[Buffer]) -> None:
        assert self._sealer is not None
        lender, incarnation = items[0].lender, items[0].incarnation
        generations = {item.index: item.generation for item in items}
        made = self._escrow(lender, list(generations), borrower, incarnation, generations)
        keys = [
            self._sealer.seal(
                EscrowedKey(incarnation, int(index), borrower, generations[int(index)]),
                {"ticket": made["ticket"], "key": key},
            )
            for index, key in made["keys"].items()
            if int(index) in generations
        ]
        self._ledger.escrow.deposit(lender, keys)

    def _escrow(
        self, lender: str, indexes: Sequence[int], borrower: str, incarnation: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        return self._agents.escrow(
            lender,
            epoch=self._ledger.epoch,
            indexes=indexes,
            borrower=borrower,
            incarnation=incarnation,
            generations=generations,
        )
