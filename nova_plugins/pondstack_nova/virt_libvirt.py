"""PondLibvirtDriver: Nova's libvirt driver, with pool memory as the guest's CPU-less NUMA nodes (zNUMA, Pond 4.2)."""

import copy
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import nova.conf
import nova.context
from nova import exception
from nova.virt.libvirt import driver, migration
from nova.virt.libvirt import utils as libvirt_utils
from oslo_log import log as logging

from pondstack.domain.backing import DEVDAX, NODE, SHARED
from pondstack.domain.errors import PondError
from pondstack.rpc.wire import Attachment
from pondstack_nova import pins, stats
from pondstack_nova.compute import host_nodes, libvirt_checks, seclabels, stored_domains, znuma
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable
from pondstack_nova.compute.lifecycle import PoolMemoryLifecycle
from pondstack_nova.compute.remote import node as remote_node
from pondstack_nova.compute.remote import swap_disk
from pondstack_nova.compute.remote.guests import RemoteGuests
from pondstack_nova.compute.remote.life import check_move, remote_mib_of
from pondstack_nova.compute.remote.memory import RemoteMemoryUnavailable

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_MIGRATE_PAUSED = 1 << 5
"""VIR_MIGRATE_PAUSED of libvirt-domain.h."""


class PondLibvirtDriver(RemoteGuests, PoolMemoryLifecycle, driver.LibvirtDriver):
    """See PoolMemoryLifecycle for the guest's life; here is what only libvirt has: XML, host memory, moves."""

    def init_host(self, host: str) -> None:
        """Check Nova's hooks first; raises HookChanged."""
        libvirt_checks.check_libvirt()
        super().init_host(host)

    # The guest's XML.

    def _get_guest_config(self, instance: Any, *args: Any, **kwargs: Any) -> Any:
        guest = super()._get_guest_config(instance, *args, **kwargs)
        attachment = self._pond_attachment(instance)
        if attachment is None:
            nodes = host_nodes.read()
            # Elsewhere a guest is as Nova makes it; one that runs before the first slice is there, the agent binds.
            znuma.bind_local(guest, nodes.local if nodes.pool else ())
        else:
            self._pond_put_on_pool(guest, instance, attachment)
        if remote_mib_of(instance):
            try:
                remote_node.apply(guest, instance.flavor.memory_mb, CONF.pondstack.emulator)
            except PondError as error:
                raise RemoteMemoryUnavailable(reason=f"{instance.uuid}: {error.message}") from error
        socket = self._pond_swap_socket(instance)
        if socket:
            swap_disk.apply(guest, socket)
        return guest

    def _pond_put_on_pool(self, guest: Any, instance: Any, attachment: Attachment) -> None:
        try:
            znuma.apply(
                guest,
                attachment,
                instance.flavor.memory_mb,
                CONF.pondstack.emulator,
                _local_nodes(attachment),
            )
        except PondError as error:
            raise PoolMemoryUnavailable(reason=f"{instance.uuid}: {error.message}") from error
        if any(backing.kind in SHARED for backing in attachment.backings):
            seclabels.run_as_root(guest, seclabels.models(self._host.get_connection().getCapabilities()))

    def _pond_had_pool_memory(self, instance: Any) -> bool | None:
        try:
            xml = self._host.get_guest(instance).get_xml_desc()
        except (exception.InstanceNotFound, exception.InternalError):
            return None
        return bool(instance.numa_topology is None and znuma.pool_cells_mib(xml))

    def _pond_cell_pins(self, attachment: Attachment) -> dict[str, set[int]]:
        return znuma.cell_pins(attachment.backings, _local_nodes(attachment))

    # Hard reboot destroys and makes anew; start and resume on host boot come here too.

    def _hard_reboot(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        with self._pond_guest(context, instance, None), self._pond_kept(instance):
            return super()._hard_reboot(context, instance, *args, **kwargs)

    # Resume and unrescue go by what was stored.

    def resume(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Bind what was suspended with pool memory, and claims none any more, to local memory before."""
        if instance.numa_topology is None:
            is_local = partial(self._pond_is_local, instance)
            stored_domains.bind(self._host, instance, host_nodes.read().local, is_local)
        return super().resume(context, instance, *args, **kwargs)

    def unrescue(self, context: Any, instance: Any) -> Any:
        """Bind the domain from before the rescue to local memory if the guest claims no other any more."""
        if instance.numa_topology is None:
            path = Path(libvirt_utils.get_instance_path(instance), "unrescue.xml")
            stored_domains.bind_file(path, host_nodes.read().local, partial(self._pond_is_local, instance))
        return super().unrescue(context, instance)

    def attach_interface(self, context: Any, instance: Any, image_meta: Any, vif: Any) -> Any:
        """Refuse a port that would pin the memory of a guest with pool memory; raises InterfaceAttachFailed."""
        pinning = vif.get("vnic_type") in pins.VNIC_TYPES
        if pinning and self._pond_holds(instance):
            LOG.error("A port of type %s would pin pool memory; %s", vif["vnic_type"], pins.LEGAL, instance=instance)
            raise exception.InterfaceAttachFailed(instance_uuid=instance.uuid)
        self._pond_refuse_port(instance, vif)
        return super().attach_interface(context, instance, image_meta, vif)

    # Live migration, at the source.

    def check_can_live_migrate_source(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse to move a guest whose nodes are not what its agent holds; raises MigrationPreCheckError."""
        check_move(instance)
        self._pond_check_leaves(instance)
        self._pond_check_running_guest(instance)
        return super().check_can_live_migrate_source(context, instance, *args, **kwargs)

    def _pond_check_running_guest(self, instance: Any) -> None:
        xml = self._host.get_guest(instance).get_xml_desc()
        cells_mib = znuma.pool_cells_mib(xml)
        try:
            ask = self.pool_memory.find if cells_mib else self.pool_memory.look
            held = ask(self._pond_node()[1], instance.uuid)
        except PoolMemoryUnavailable as error:
            raise exception.MigrationPreCheckError(reason=str(error)) from error
        if held is None and not znuma.on_files(xml):
            return  # what was behind its CPU-less nodes has moved to local memory
        held_mib = tuple(backing.size_mib for backing in held.backings) if held else ()
        if cells_mib != held_mib:
            raise exception.MigrationPreCheckError(
                reason=f"the running guest has CPU-less nodes of {list(cells_mib)} MiB, but pondstack-agent holds "
                f"{list(held_mib)} MiB for it; hard reboot it, or migrate it cold"
            )

    def _live_migration_operation(
        self,
        context: Any,
        instance: Any,
        dest: Any,
        block_migration: Any,
        migrate_data: Any,
        guest: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # Nova's own NUMA guests have a topology, and none of them has pool memory.
        ours = instance.numa_topology is None
        if ours and "dst_numa_info" in migrate_data and migrate_data.dst_numa_info:
            guest = _RewrittenGuest(guest, partial(znuma.rebind, pins=migrate_data.dst_numa_info.cell_pins))
        elif ours:
            guest = _RewrittenGuest(guest, znuma.leave)
        if remote_mib_of(instance):
            guest = _RewrittenGuest(guest, remote_node.keep_memfd)
        try:
            if self._pond_leave_out(guest, instance):
                guest = _PausedGuest(guest)
            return super()._live_migration_operation(
                context, instance, dest, block_migration, migrate_data, guest, *args, **kwargs
            )
        except Exception as error:
            # Who watches the migration decides by this, too, and undoes one whose guest is here. Then it looks for an
            # exception of this thread: with one, Nova would have the server in ERROR, though it runs on.
            if migration.find_job_type(guest, instance) != migration.libvirt.VIR_DOMAIN_JOB_FAILED:
                raise
            LOG.error("The live migration failed, its guest stays here: %s", error, instance=instance)
            return None

    # The host's memory: pool nodes are Placement's pool inventory, never the host's.

    def _pond_own_mib(self) -> int | None:
        """Return the host's own memory where getInfo may count pool nodes in; None where Nova's total holds."""
        nodes = host_nodes.read()
        # With file_backed_memory the operator has set it.
        return nodes.local_mib if nodes.pool and CONF.libvirt.file_backed_memory == 0 else None

    def update_provider_tree(self, provider_tree: Any, nodename: str, allocations: Any = None) -> None:
        """Keep the memory of CPU-less host nodes out of MEMORY_MB, too."""
        super().update_provider_tree(provider_tree, nodename, allocations=allocations)
        own_mib = self._pond_own_mib()
        inventory = copy.deepcopy(provider_tree.data(nodename).inventory)
        if own_mib is not None and "MEMORY_MB" in inventory:
            reserved_mib = min(inventory["MEMORY_MB"]["reserved"], own_mib)
            inventory["MEMORY_MB"].update(total=own_mib, max_unit=own_mib, reserved=reserved_mib)
            provider_tree.update_inventory(nodename, inventory)
            self.provider_tree = copy.deepcopy(provider_tree)

    def get_available_resource(self, nodename: str) -> Any:
        """Keep the memory of CPU-less host nodes out of the hypervisor's figures; tell what PondFilter must know."""
        data = super().get_available_resource(nodename)
        if CONF.libvirt.file_backed_memory > 0:
            refusal = "[libvirt] file_backed_memory is set on this host"
            data["stats"] = {**(data.get("stats") or {}), stats.NO_POOL_MEMORY: refusal}
        if not CONF.libvirt.live_migration_permit_post_copy:
            data["stats"] = {**(data.get("stats") or {}), stats.LEAVES_OUT: "1"}
        own_mib = self._pond_own_mib()
        if own_mib is not None:
            data["memory_mb"] = own_mib
            data["memory_mb_used"] = min(max(0, data["memory_mb_used"]), own_mib)
        return data

    def _get_host_numa_topology(self) -> Any:
        """Leave CPU-less nodes out: no guest NUMA node of Nova's may be fitted to pool memory."""
        topology = super()._get_host_numa_topology()
        if topology is not None:
            pool_nodes = host_nodes.read().pool
            topology.cells = [cell for cell in topology.cells if cell.id not in pool_nodes]
        return topology


class _RewrittenGuest:
    """A libvirt guest whose migrate() gives the destination another XML."""

    def __init__(self, guest: Any, rewrite: Callable[[str], str]) -> None:
        self._guest = guest
        self._rewrite = rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._guest, name)

    def migrate(self, *args: Any, destination_xml: str | None = None, **kwargs: Any) -> Any:
        if destination_xml:
            destination_xml = self._rewrite(destination_xml)
        return self._guest.migrate(*args, destination_xml=destination_xml, **kwargs)


class _PausedGuest:
    """A libvirt guest whose migrate() leaves it paused at the destination, which runs it once it may."""

    def __init__(self, guest: Any) -> None:
        self._guest = guest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._guest, name)

    def migrate(self, *args: Any, flags: int = 0, **kwargs: Any) -> Any:
        return self._guest.migrate(*args, flags=flags | _MIGRATE_PAUSED, **kwargs)


def _local_nodes(attachment: Attachment) -> Collection[int]:
    """Return the host's own nodes, where a guest's other memory could come from the pool's; none where it cannot."""
    nodes, kinds = host_nodes.read(), {backing.kind for backing in attachment.backings}
    return nodes.local if NODE in kinds or (DEVDAX in kinds and nodes.pool) else ()
