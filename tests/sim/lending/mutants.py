"""Deliberately broken variants of what lends memory. Each must be caught, as those of tests.sim.mutants."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import oslo_messaging

from pondstack.controller.lending import endpoint, lenders
from pondstack.controller.lending.lenders import BufferSettler
from pondstack.controller.reconcile.holders import Claims
from pondstack.controller.reconcile.observation import Observation
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.controller.reconcile.rules import loans
from pondstack.domain import buffer_choice
from pondstack.domain.escrow import Reach
from pondstack.domain.states import SliceState
from pondstack.domain.transitions import LET_GO
from pondstack.ledger import buffers as ledger_buffers
from pondstack.ledger import escrow as ledger_escrow
from pondstack.ledger import loans as ledger_loans
from pondstack.ledger import transactions
from pondstack.ledger.loans import Loans
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.reclaim_operation import Reclaims
from pondstack_rdma.lending import SoftwareLender
from tests.fixtures.memory import buffers, escrow
from tests.sim.lending.handover import Handover
from tests.sim.lending.shortage import SHORTAGE
from tests.sim.lending.tenant import Tenant
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


@mutant()
def free_before_keys_are_dead() -> Iterator[None]:
    """What a borrower gave back is free at once: nobody ends its key."""
    with mock.patch.object(BufferSettler, "_revoke", lambda _self, items: {item.index for item in items}):
        yield


@mutant("revoke_partly")
def partly_counts_as_all() -> Iterator[None]:
    """A lender that ended some keys is taken to have ended all that it was told to."""
    plain = BufferSettler._revoke

    def revoke(self: Any, items: Any) -> set[int]:
        plain(self, items)
        return {item.index for item in items}

    with mock.patch.object(BufferSettler, "_revoke", revoke):
        yield


@mutant()
def memory_stays_dirty() -> Iterator[None]:
    """A lender keeps what a borrower wrote for the next one."""

    def end(self: Any, key: Any, _region: int) -> None:
        self._key_ended(key)

    with mock.patch.object(SoftwareLender, "_end", end):
        yield


@mutant("cut", "pause_agent", "lose")
def given_back_on_time_out() -> Iterator[None]:
    """A borrower that does not answer in time is taken to have let go."""
    plain = BufferSettler._take_back

    def ask_back(self: Any, held: Any) -> None:
        try:
            plain(self, held)
        except oslo_messaging.MessagingTimeout:
            only = [(item.incarnation, item.index) for item in held]
            self._ledger.loans.give_back(str(transactions.uuid4()), held[0].allocation_uuid, held[0].host, only)

    with mock.patch.object(BufferSettler, "_take_back", ask_back):
        yield


@mutant()
def abandoned_for_ever() -> Iterator[None]:
    """A loan that is never acknowledged is never asked back."""
    with mock.patch.object(Loans, "release_abandoned", return_value=0):
        yield


@mutant("duplicate", "delay")
def late_words_count() -> Iterator[None]:
    """The controller takes an old word of a lender for its newest."""
    plain = buffers.lender

    def forgetful(tx: Any, host: str) -> Any:
        found = plain(tx, host)
        return found and replace(found, sequence=-1)

    with mock.patch.object(buffers, "lender", forgetful):
        yield


@mutant("duplicate", "delay")
def late_commands_count() -> Iterator[None]:
    """A lender ends whatever key a buffer has when it is told to end an old one."""
    plain = BufferTable.revoke

    def revoke(self: Any, indexes: Any, generations: Any = None) -> Any:
        del generations
        return plain(self, indexes)

    with mock.patch.object(BufferTable, "revoke", revoke):
        yield


@mutant()
def lender_helps_itself() -> Iterator[None]:
    """A host takes its memory back without asking who has it."""

    def freed(self: Any, _entry: Any) -> list[int]:
        return [item.index for item in self._client.hold().buffers]

    with mock.patch.object(Reclaims, "_freed", freed):
        yield


@mutant()
def failed_attempt_gives_all_back() -> Iterator[None]:
    """An attempt to borrow that fails gives back what another attempt of the same operation was answered with."""

    def give_back(self: Any, uuid: str, _reason: str) -> int:
        for host in {item.host for item in self.allocations() if item.uuid == uuid}:
            self.give_back(str(transactions.uuid4()), uuid, host)
        return 0

    with mock.patch.object(Loans, "release_unacknowledged", give_back):
        yield


@mutant()
def admitted_without_a_claim() -> Iterator[None]:
    """A guaranteed loan is given to whoever asks, whatever it claims in Placement."""
    with mock.patch.object(ledger_loans, "check_claim", return_value=None):
        yield


@mutant()
def unclaimed_loan_stays() -> Iterator[None]:
    """A loan whose claim is gone stays with its borrower."""
    with mock.patch.object(loans, "_is_overdue", return_value=False):
        yield


@mutant()
def loan_without_grace() -> Iterator[None]:
    """A loan is asked back as soon as its claim is gone, which may be back in a moment."""

    def overdue(observation: Any, aged: Any) -> bool:
        return not observation.loan_claimed[aged.item.uuid]

    with mock.patch.object(loans, "_is_overdue", overdue):
        yield


@mutant()
def claims_of_others_count() -> Iterator[None]:
    """A loan counts as claimed as long as anybody claims anything of lent memory."""

    def claimed(self: Any, _host: str, _consumer: str) -> int:
        return sum((self.remote or {}).values())

    with mock.patch.object(Claims, "claimed_remote_mib", claimed):
        yield


@mutant()
def lost_loan_stays() -> Iterator[None]:
    """A loan that its borrower knows nothing of, by its own report, stays its own."""
    with mock.patch.object(loans, "_is_listed", return_value=True):
        yield


@mutant()
def any_report_tells_of_a_loss() -> Iterator[None]:
    """A report from before a loan was acknowledged counts as the borrower's word that it does not have it."""

    def report_after(self: Any, name: str, _age: float) -> Any:
        return self.rack.hosts.get(name) if self.host_up(name) else None

    with (
        mock.patch.object(Observation, "report_after", report_after),
        mock.patch.object(Reconciler, "_confirmed", staticmethod(lambda find, _refresh: find())),
    ):
        yield


@mutant()
def told_more_than_it_got() -> Iterator[None]:
    """A borrower is told all its keys of a lender, not those of the buffers that it got."""

    def disclosed(self: Any, borrower: str, incarnation: str, _indexes: Any) -> Any:
        mine = self.of_lender(incarnation)
        indexes = [key.index for key in mine if key.borrower == borrower]
        return self._transactions.read(lambda tx: self._store.escrow.sealed(tx, borrower, incarnation, indexes))

    with mock.patch.object(ledger_escrow.Escrow, "disclosed", disclosed):
        yield


@mutant()
def anothers_free_buffer_counts_as_in_reach() -> Iterator[None]:
    """What one host had of a lender that sleeps, and gave back, is given to another one."""
    plain = buffer_choice._in_escrow

    def in_escrow(item: Any, borrower: str, reach: Any) -> bool:
        return plain(replace(item, promised_to=None), borrower, reach)

    def disclose(tx: Any, items: Any, _borrower: str) -> None:
        for item in items:
            for key in escrow._of(tx, item):
                escrow.put(tx, [replace(key, generation=item.generation + 1)])

    with (
        mock.patch.object(buffer_choice, "_in_escrow", in_escrow),
        mock.patch.object(escrow, "disclose", disclose),
    ):
        yield


@mutant("data_plane_crash")
def links_are_not_looked_at() -> Iterator[None]:
    """A host whose data plane has crashed is given buffers of lenders that sleep."""
    with mock.patch.object(Reach, "covers", Reach.has_key):
        yield


@mutant()
def keys_in_escrow_outlive_their_end() -> Iterator[None]:
    """A key whose lender has ended it stays in escrow, and counts as good once the next ones are being made."""
    plain = ledger_escrow.Escrow.begin

    def begin(self: Any, host: str, incarnation: str, indexes: Any) -> int:
        before = self._transactions.read(lambda tx: [key for key in escrow._all(tx) if key.incarnation == incarnation])
        done = plain(self, host, incarnation, indexes)
        now = {(item.incarnation, item.index): item.generation for item in self._transactions.read(buffers.free)}
        kept = [replace(key, generation=now[key.place]) for key in before if key.place in now]
        self._transactions.write(lambda tx: escrow.put(tx, kept))
        return done

    with (
        mock.patch.object(ledger_escrow.Escrow, "begin", begin),
        mock.patch.object(escrow, "remove", return_value=None),
    ):
        yield


@mutant()
def woken_lender_is_taken_to_have_ended_all_keys() -> Iterator[None]:
    """A lender that is awake again is not told to end the keys in escrow, and those that were disclosed."""

    def end_keys(self: Any, left: Any) -> None:
        ended = {item.index: item.generation for item in left}
        self._ledger.escrow.end(left[0].lender, left[0].incarnation, ended)

    with mock.patch.object(BufferSettler, "_end_keys", end_keys):
        yield


@mutant()
def escrow_is_never_emptied() -> Iterator[None]:
    """A lender that is awake again keeps all keys, so that nobody gets its buffers."""
    with mock.patch.object(BufferSettler, "_end_keys", return_value=None):
        yield


@mutant()
def owners_key_ends_with_those_of_others() -> Iterator[None]:
    """When a lender wakes, the key of whoever uses a buffer ends together with those in escrow."""

    def end_others(self: Any, used: Any) -> None:
        self._revoke(used)
        ended = {item.index: item.generation for item in used}
        self._ledger.escrow.end(used[0].lender, used[0].incarnation, ended)

    with mock.patch.object(BufferSettler, "_end_others_keys", end_others):
        yield


@mutant()
def given_before_the_borrower_let_go() -> Iterator[None]:
    """What a best-effort loan is to give up goes on before its borrower has let go of it."""
    plain = Loans.make_way

    def make_way(self: Any, *arguments: Any) -> Any:
        answer = plain(self, *arguments)
        for item in self._transactions.read(buffers.everything):
            if item.state is SliceState.RELEASING and item.reason.startswith("a guaranteed loan"):
                place = (item.incarnation, item.index)
                self.give_back(str(transactions.uuid4()), item.allocation_uuid, item.host, [place])
        return answer

    with mock.patch.object(Loans, "make_way", make_way):
        yield


@mutant()
def loans_of_sleepers_give_way() -> Iterator[None]:
    """Buffers of a lender that sleeps are asked back for another host, although nobody can end their keys."""
    with mock.patch.object(buffer_choice, "_can_be_anothers", lambda item, _silent: not item.leaving):
        yield


@mutant()
def migrations_claim_nothing() -> Iterator[None]:
    """While Nova moves a guest, nobody claims what it has borrowed at its source."""
    with mock.patch.object(Claims, "moves_remote", return_value=False):
        yield


def _found(plain: Any, change: Any) -> Any:
    return mock.patch.object(endpoint, "to_find", lambda missing, supply: change(plain, missing, supply))


@mutant(SHORTAGE)
def shortages_are_met_by_one_kind() -> Iterator[None]:
    """Active hosts are asked for all that is missing, or best-effort loans give way for all of it."""

    def one(plain: Any, missing: int, supply: Any) -> Any:
        hosts = supply._replace(able=0, returning=0)
        return plain(missing, hosts) or plain(missing, supply._replace(rooms={}, coming=0))

    with _found(buffer_choice.to_find, one):
        yield


@mutant(SHORTAGE)
def what_comes_back_is_asked_for_again() -> Iterator[None]:
    """Who repeats a borrow has hosts asked for what best-effort loans are giving back already."""
    with _found(buffer_choice.to_find, lambda plain, missing, supply: plain(missing, supply._replace(returning=0))):
        yield


@mutant()
def source_writes_after_the_switch() -> Iterator[None]:
    """The guest's process at the source of a move writes on to buffers that are the destination's."""
    with mock.patch.object(Tenant, "may_write", return_value=True):
        yield


@mutant()
def switched_without_versions() -> Iterator[None]:
    """A guest is the destination's before that knows what its lenders are to have."""
    with mock.patch.object(Handover, "table", return_value=None):
        yield


@mutant("lender_death")
def mirror_dropped_at_the_switch() -> Iterator[None]:
    """The source of a move drops its mirror as soon as the guest is the destination's."""
    with mock.patch.object(Handover, "has_mirror", return_value=False):
        yield


@mutant()
def handed_over_buffer_is_freed_by_its_source() -> Iterator[None]:
    """A buffer that is handed over goes back when its former owner lets go of it."""

    def inherit(store: Any, tx: Any, items: Any, *, epoch: int) -> Any:
        moves: Any = []
        for item in items:
            moves += ledger_loans.move(store.buffers.swap, tx, [item], *LET_GO[item.state], epoch=epoch)
        store.buffers.mark(tx, items, {"heir": None, "shared": False})
        return moves

    with mock.patch.object(ledger_loans, "inherit", inherit), mock.patch.object(ledger_buffers, "inherit", inherit):
        yield


@mutant()
def former_owners_key_lives_on() -> Iterator[None]:
    """After a move the lender is not told to end the key of the source."""
    with mock.patch.object(lenders, "_others_have_keys", lambda item: item.heir is None and item.escrowed):
        yield


@mutant()
def heirs_count_as_strangers() -> Iterator[None]:
    """The destination of a move is told to let go of what is being handed over to it, and its source keeps none."""
    plain = Loans.give_back

    def give_back(self: Any, operation_id: str, uuid: str, host: str, only: Any = None) -> Any:
        heirs = self._transactions.read(lambda tx: buffers.of_heir(tx, uuid))
        for item in heirs:
            plain(self, str(transactions.uuid4()), item.allocation_uuid, item.host, [(item.incarnation, item.index)])
        return plain(self, operation_id, uuid, host, only)

    with mock.patch.object(Loans, "give_back", give_back):
        yield
