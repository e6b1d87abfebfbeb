"""What the QEMU of a guest leaves out of its live migrations: what is at the destination already, or comes otherwise.

| memory of the guest | at the destination | QEMU |
|---|---|---|
| remote | the data planes hand its pages over | leaves it out |
| slices that are files or devices, handed over | the same bytes | leaves them out: a copy would bring stale pages |
| slices that are files or devices, others there | empty | copies them |
| slices that are nodes of the host, local memory | empty | copies it: it is no file |

QEMU's x-ignore-shared leaves out all shared files, or none. Both ends have to say the same, or QEMU refuses the
migration: what is set at one end only, for a message that was lost, costs no memory.

CPU caches of two hosts are not coherent over a dax device. So such a guest arrives paused, and runs once its former
host has written its caches back and let go.
"""

import contextlib
from typing import Any

import nova.conf
from nova import exception, objects
from nova.compute import power_state, vm_states
from oslo_log import log as logging

from pondstack.domain.backing import DEVDAX, FILE, SHARED
from pondstack.rpc.wire import Attachment
from pondstack_nova import stats
from pondstack_nova.compute import slice_arrival, znuma
from pondstack_nova.compute.agent_client import PoolAttachments
from pondstack_nova.compute.remote import monitor
from pondstack_nova.compute.remote.life import check_move, remote_mib_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class LeftOutMemory:
    """Mixin of PondLibvirtDriver, before PoolMemoryLifecycle."""

    _host: Any
    pool_memory: PoolAttachments

    # At the destination.

    def _pond_takes_over(self, context: Any, instance: Any, source: Attachment) -> bool:
        """Return whether a guest's slices may be handed over to this host: both QEMUs can leave them out.

        Not of one with remote memory, whose check comes before anybody knows whether its slices are handed over.
        """
        if remote_mib_of(instance) or not {backing.kind for backing in source.backings} <= SHARED:
            return False
        node = objects.ComputeNode.get_by_host_and_nodename(context, instance.host, instance.node)
        return stats.leaves_out(node)

    def post_live_migration_at_destination(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a guest that has come with its slices and is paused for them; raises PoolMemoryUnavailable, it stays so.

        One that its owner has paused does not run, and its slices are taken up all the same.
        """
        guest = self._host.get_guest(instance)
        if guest.get_power_state(self._host) == power_state.PAUSED and znuma.on_files(guest.get_xml_desc()):
            self._pond_take_up(guest, instance)
        return super().post_live_migration_at_destination(context, instance, *args, **kwargs)  # type: ignore[misc]

    def _pond_take_up(self, guest: Any, instance: Any) -> None:
        host = self._pond_node()[1]  # type: ignore[attr-defined]
        held = self.pool_memory.find(host, instance.uuid)
        if held is None or not held.handed or DEVDAX not in {backing.kind for backing in held.backings}:
            return
        slice_arrival.take_up(self.pool_memory, host, instance.uuid)
        if instance.vm_state != vm_states.PAUSED:
            guest.resume()
        LOG.info("Its slices are this host's alone", instance=instance)

    # At the source.

    def _pond_check_leaves(self, instance: Any) -> None:
        """Raise MigrationPreCheckError where QEMU itself might fetch a guest's memory, or leave too much of it out."""
        if not remote_mib_of(instance):
            return
        if CONF.libvirt.live_migration_permit_post_copy:
            raise exception.MigrationPreCheckError(
                reason="a server with remote memory is not migrated with [libvirt] live_migration_permit_post_copy"
            )
        on_files = znuma.on_files(self._host.get_guest(instance).get_xml_desc())
        check_move(instance, (FILE,) if on_files else ())

    def _pond_leave_out(self, guest: Any, instance: Any) -> bool:
        """Have a guest's QEMU leave out of a migration what has not to be copied, and that only.

        Returns whether the guest has to wait at the destination until this host's CPU caches are written back. Raises
        PoolMemoryUnavailable, InternalError; MigrationError where it would leave out what has to be copied.
        """
        remote, xml = bool(remote_mib_of(instance)), guest.get_xml_desc()
        files = znuma.on_files(xml)
        moving = self._pond_handed_over(instance) if files else None
        handed = moving is not None
        if files and remote and not handed:
            raise exception.MigrationError(reason="its remote memory is left out, but its slices have to be copied")
        if handed and not remote and znuma.shares_more(xml):
            raise exception.MigrationError(reason="its slices are left out, but more of it is shared with QEMU")
        if remote or files:
            monitor.ignore_shared(guest, on=remote or handed)
        return moving is not None and DEVDAX in {backing.kind for backing in moving.backings}

    def _pond_handed_over(self, instance: Any) -> Attachment | None:
        held = self.pool_memory.find(self._pond_node()[1], instance.uuid)  # type: ignore[attr-defined]
        return held if held is not None and held.heir else None

    def _pond_leave_nothing_out(self, guest: Any, instance: Any) -> None:
        """Have a guest's QEMU send, or save, all of its memory."""
        if remote_mib_of(instance) or znuma.on_files(guest.get_xml_desc()):
            monitor.ignore_shared(guest, on=False)

    def rollback_live_migration_at_source(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Have QEMU send all of its memory again, of a guest that runs on here."""
        with contextlib.suppress(Exception):  # `suspend`, and the next migration, do it again
            self._pond_leave_nothing_out(self._host.get_guest(instance), instance)
        return super().rollback_live_migration_at_source(context, instance, *args, **kwargs)  # type: ignore[misc]

    def suspend(self, context: Any, instance: Any) -> Any:
        """Be sure that what is saved has the guest's memory: a live migration that failed may have left it out."""
        self._pond_leave_nothing_out(self._host.get_guest(instance), instance)
        return super().suspend(context, instance)  # type: ignore[misc]
