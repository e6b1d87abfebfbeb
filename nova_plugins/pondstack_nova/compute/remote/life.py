"""What remote memory adds to the life of a guest, for any virt driver; PoolMemoryLifecycle calls it.

A guest has it by its flavor alone (pond:remote_mb): it is guaranteed, and nothing decides otherwise. It is borrowed
before the guest is made, and given back when the guest leaves its host. What serves it to the guest's process ends with
that, so each start has it served anew, before the guest runs. A swap disk (pond:swap_mb) comes and goes with it; it
stays over stops and starts.
"""

from collections.abc import Collection
from typing import Any

from nova import exception
from oslo_log import log as logging

from pondstack.domain.errors import BadSpec
from pondstack.domain.live_move import why_it_stays
from pondstack.domain.remote_share import Shares, shares
from pondstack.domain.sizing import given_specs
from pondstack.rpc.wire import Attachment
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable
from pondstack_nova.compute.holdings import PoolMemoryHoldings
from pondstack_nova.compute.remote import lost_guests, mirror_inventory
from pondstack_nova.compute.remote.lost_guests import LostGuests
from pondstack_nova.compute.remote.memory import RemoteMemory, RemoteMemoryUnavailable
from pondstack_nova.compute.remote.mirror_room import MirrorRoomReader
from pondstack_nova.compute.remote.swap import Swap

LOG = logging.getLogger(__name__)


class RemoteMemoryLife(PoolMemoryHoldings):
    """Base of PoolMemoryLifecycle: what a guest borrows."""

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        self.remote_memory = RemoteMemory(lambda: self.pool_memory)
        self.swap = Swap(lambda: self.pool_memory)
        self.mirror_room = MirrorRoomReader()
        self.lost_guests = LostGuests()

    def _pond_no_remote(self) -> str | None:
        """Return why no guest of this host can have remote memory, None where they can; a driver may know more."""
        return None

    def _pond_borrow(self, instance: Any, *, patient: bool, source: str = "") -> bool:
        """Borrow what the guest's flavor says; True when it is new. Raises RemoteMemoryUnavailable, SwapUnavailable.

        `source`: the host that it is to come from by a live migration, with what it has borrowed there.
        """
        specs = given_specs(instance.flavor.extra_specs)
        host, whose = self._pond_node()[1], _owner(instance)
        borrowed = bool(specs.remote_mib) and self.remote_memory.borrow(
            host, instance.uuid, specs.remote_mib, patient=patient, source=source, **whose
        )
        try:
            has_disk = bool(specs.swap_mib) and self.swap.begin(
                host, instance.uuid, specs.swap_mib, patient=patient, **whose
            )
        except Exception:
            if borrowed:
                self.remote_memory.give_back(host, instance.uuid)
            raise
        return borrowed or has_disk

    def _pond_swap_socket(self, instance: Any) -> str:
        """Return where the swap disk of a guest that is about to start is served, "" for none."""
        swap_mib = swap_mib_of(instance)
        if not swap_mib:
            return ""
        return self.swap.socket(self._pond_node()[1], instance.uuid, swap_mib, **_owner(instance))

    def _pond_extend(self, instance: Any) -> None:
        """Have the guest's process served, which is there and does not run yet; raises RemoteMemoryUnavailable."""
        found = self._pond_shares(instance)
        self.remote_memory.extend(
            self._pond_node()[1],
            instance.uuid,
            memory_mib=found.node_mib,
            local_mib=found.local_mib,
            disk_mib=found.disk_mib,
        )

    def _pond_give_back(self, instance: Any) -> None:
        """Give back what a guest that has left this host borrowed."""
        if remote_mib_of(instance):
            self.remote_memory.give_back(self._pond_node()[1], instance.uuid)
        if swap_mib_of(instance):
            self.swap.end(self._pond_node()[1], instance.uuid)

    def _pond_await_move(self, instance: Any, attachment: Attachment | None) -> bool:
        """Have a guest's remote memory be handed over to this host, where it is to run; True: it has some.

        `attachment`: its pool memory here. Raises MigrationPreCheckError, after which nothing of it is left.
        """
        if not remote_mib_of(instance):
            return False
        host, source = self._pond_node()[1], instance.node
        try:
            found = self._pond_shares_of(instance, attachment.pool_mib if attachment is not None else 0)
            self._pond_borrow(instance, patient=False, source=source)
            self.remote_memory.move(
                source,
                host,
                instance.uuid,
                memory_mib=found.node_mib,
                local_mib=found.local_mib,
                disk_mib=found.disk_mib,
            )
        except PoolMemoryUnavailable as error:
            self._pond_give_back(instance)
            raise exception.MigrationPreCheckError(reason=str(error)) from error
        return True

    def _pond_take_back(self, instance: Any) -> None:
        """Have a guest that was to leave this host go on here."""
        if remote_mib_of(instance):
            self.remote_memory.take_back(self._pond_node()[1], instance.uuid)

    def _pond_shares(self, instance: Any) -> Shares:
        attachment = self._pond_attachment(instance)
        return self._pond_shares_of(instance, attachment.pool_mib if attachment is not None else 0)

    def _pond_shares_of(self, instance: Any, pool_mib: int) -> Shares:
        try:
            specs = given_specs(instance.flavor.extra_specs)
            return shares(instance.flavor.memory_mb, pool_mib, specs.remote_mib, disk_mib=specs.disk_mib)
        except BadSpec as error:
            raise RemoteMemoryUnavailable(reason=error.message) from error

    def _pond_end_lost_guests(self, nodename: str) -> None:
        """End the guests whose memory is lost; what fails is tried again in the next round."""
        for uuid in self.lost_guests.read(nodename):
            try:
                lost_guests.end(nodename, uuid, self.power_off)  # type: ignore[attr-defined]
            except Exception:  # of Nova, of libvirt: the round goes on, for all other guests
                LOG.exception("Guest %s, which cannot go on, was not ended", uuid)

    def _pond_offer_mirrors(self, provider_tree: Any, nodename: str, before: Any) -> None:
        """Tell Placement how much of guests with remote memory this host has mirrors for."""
        obstacle = self._pond_no_remote()
        room_mib = 0 if obstacle else self.mirror_room.read(nodename)
        if obstacle:
            LOG.debug("No guest with remote memory is placed on %s: %s", nodename, obstacle)
        inventory = provider_tree.data(nodename).inventory
        provider_tree.update_inventory(nodename, mirror_inventory.offer(inventory, before, room_mib))


def remote_mib_of(instance: Any) -> int:
    """Return the remote memory of a guest in MiB, 0 for none."""
    return given_specs(instance.flavor.extra_specs).remote_mib


def swap_mib_of(instance: Any) -> int:
    """Return the size of a guest's swap disk in MiB, 0 for none."""
    return given_specs(instance.flavor.extra_specs).swap_mib


def check_move(instance: Any, backings: Collection[str] = ()) -> None:
    """Raise MigrationPreCheckError when a guest cannot be migrated live for where its memory is.

    `backings`: the kinds of what its pool memory is, as far as this host knows.
    """
    stays = why_it_stays(given_specs(instance.flavor.extra_specs), backings)
    if stays:
        raise exception.MigrationPreCheckError(reason=stays)


def _owner(instance: Any) -> dict[str, str]:
    return {"project_id": instance.project_id or "", "user_id": instance.user_id or ""}
