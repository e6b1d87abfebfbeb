"""What the QEMU of a guest leaves out of its live migrations: what is at the destination already, or comes otherwise.

| memory of the guest | at the destination | QEMU |
|---|---|---|
| remote | the data planes hand its pages over | leaves it out |
| slices that are files, handed over | the same bytes | leaves them out: a copy would put stale pages over them |
| slices that are files, others there | empty | copies them |
| slices that are nodes of the host, local memory | empty | copies it: it is no file |

QEMU's x-ignore-shared leaves out all shared files, or none. Both ends have to say the same, or QEMU refuses the
migration: what is set at one end only, for a message that was lost, costs no memory.
"""

import contextlib
from typing import Any

import nova.conf
from nova import exception, objects

from pondstack.domain.backing import FILE
from pondstack.rpc.wire import Attachment
from pondstack_nova import stats
from pondstack_nova.compute import znuma
from pondstack_nova.compute.agent_client import PoolAttachments
from pondstack_nova.compute.remote import monitor
from pondstack_nova.compute.remote.life import check_move, remote_mib_of

CONF = nova.conf.CONF


class LeftOutMemory:
    """Mixin of PondLibvirtDriver, before PoolMemoryLifecycle."""

    _host: Any
    pool_memory: PoolAttachments

    # At the destination.

    def _pond_takes_over(self, context: Any, instance: Any, source: Attachment) -> bool:
        """Return whether a guest's slices may be handed over to this host: both QEMUs can leave them out.

        Not of one with remote memory, whose check comes before anybody knows whether its slices are handed over.
        """
        if remote_mib_of(instance) or {backing.kind for backing in source.backings} != {FILE}:
            return False
        node = objects.ComputeNode.get_by_host_and_nodename(context, instance.host, instance.node)
        return stats.leaves_out(node)

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

    def _pond_leave_out(self, guest: Any, instance: Any) -> None:
        """Have a guest's QEMU leave out of a migration what has not to be copied, and that only.

        Raises PoolMemoryUnavailable, InternalError; MigrationError where it would leave out what has to be copied.
        """
        remote, xml = bool(remote_mib_of(instance)), guest.get_xml_desc()
        files = znuma.on_files(xml)
        handed = files and self._pond_is_handed_over(instance)
        if files and remote and not handed:
            raise exception.MigrationError(reason="its remote memory is left out, but its slices have to be copied")
        if handed and not remote and znuma.shares_more(xml):
            raise exception.MigrationError(reason="its slices are left out, but more of it is shared with QEMU")
        if remote or files:
            monitor.ignore_shared(guest, on=remote or handed)

    def _pond_is_handed_over(self, instance: Any) -> bool:
        held = self.pool_memory.find(self._pond_node()[1], instance.uuid)  # type: ignore[attr-defined]
        return held is not None and bool(held.heir)

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
