"""What pool and remote memory add to the life of a guest, for any virt driver: a mixin before Nova's driver class.

| Nova does | pool memory |
|---|---|
| spawn, unshelve, evacuate here, finish_migration, finish_revert_migration | attached before the guest is made |
| hard reboot, start, resume on host boot | found (or attached again) before anything is torn down, kept by destroy |
| rebuild | kept by destroy, found by spawn |
| stop, soft reboot, pause, suspend, resume, rescue, unrescue | untouched |
| destroy: delete, shelve offload, revert at the destination, evacuated from here | released |
| migrate_disk_and_power_off | released once the guest is off |
| pre_live_migration | attached at the destination as at the source, or handed over; not where all is local there |
| post_live_migration | released at the source |
| rollback_live_migration_at_destination | released at the destination |

Remote memory is borrowed where pool memory is attached, and given back where that is released (remote/life.py). A guest
that has some and moves live is handed over between the hosts' data planes; one with a swap disk does not move live.

Whether a guest has pool memory, holdings.py says: by what Placement holds for it, never by its flavor.
While nova-compute starts, perhaps because its host does, guests that are started again wait for the agent.
A release never fails its caller; an attach that fails raises PoolMemoryUnavailable (Nova reschedules a build). What is
left behind either way, the controller's reconciler finds by comparing Placement, ledger and agents.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from nova import exception, objects
from nova.compute import task_states
from nova.compute import utils as compute_utils
from oslo_log import log as logging

from pondstack.domain.errors import Conflict
from pondstack.rpc.wire import Attachment
from pondstack_nova import flavors, stats
from pondstack_nova.compute import claims, lent_inventory, lent_memory, placement_options
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable
from pondstack_nova.compute.claims import PoolClaim
from pondstack_nova.compute.holdings import Claim
from pondstack_nova.compute.remote.life import RemoteMemoryLife, check_move

LOG = logging.getLogger(__name__)


class PoolMemoryLifecycle(RemoteMemoryLife):
    """Mixin; the class after it in the MRO is a nova.virt.driver.ComputeDriver. Thread-safe, like Nova by instance."""

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        self.lent_memory = lent_memory.LentMemoryReader()
        self._pond_lock = threading.Lock()
        self._pond_rebooting: set[str] = set()
        self._pond_rebuilding: set[str] = set()
        self._pond_given_up: set[str] = set()

    def _pond_cell_pins(self, attachment: Attachment) -> dict[str, set[int]]:
        """Return the host nodes that the guest's cells are bound to on this host; none for slices that are files."""
        del attachment
        return {}

    # Nova-compute starts.

    def init_host(self, host: str) -> None:
        """Have guests that are started again wait for the agent from now on, up to agent_start_timeout_seconds."""
        placement_options.warn()
        super().init_host(host)  # type: ignore[misc]
        self.pool_memory.nova_compute_started()

    def resume_state_on_host_boot(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Have a guest that lacks its pool memory show why: Nova itself would only set it to ERROR."""
        try:
            return super().resume_state_on_host_boot(context, instance, *args, **kwargs)  # type: ignore[misc]
        except PoolMemoryUnavailable as error:
            compute_utils.add_instance_fault_from_exc(context, instance, error, sys.exc_info())
            raise

    # Life of a guest.

    def spawn(
        self,
        context: Any,
        instance: Any,
        image_meta: Any,
        injected_files: Any,
        admin_password: Any,
        allocations: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Attach, then make the guest; also unshelve, the second half of rebuild and of evacuate."""
        with self._pond_guest(context, instance, allocations, made_here=True):
            return super().spawn(  # type: ignore[misc]
                context, instance, image_meta, injected_files, admin_password, allocations, *args, **kwargs
            )

    def finish_migration(
        self,
        context: Any,
        migration: Any,
        instance: Any,
        disk_info: Any,
        network_info: Any,
        image_meta: Any,
        resize_instance: Any,
        allocations: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Attach at the destination of a cold migration or resize, then make the guest."""
        with self._pond_guest(context, instance, allocations):
            return super().finish_migration(  # type: ignore[misc]
                context,
                migration,
                instance,
                disk_info,
                network_info,
                image_meta,
                resize_instance,
                allocations,
                *args,
                **kwargs,
            )

    def finish_revert_migration(
        self, context: Any, instance: Any, network_info: Any, migration: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Attach again at the source, which gave its slices back when the guest was powered off there."""
        with self._pond_guest(context, instance, None, migration=migration):
            return super().finish_revert_migration(  # type: ignore[misc]
                context, instance, network_info, migration, *args, **kwargs
            )

    def migrate_disk_and_power_off(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Release at the source of a cold migration or resize once the guest is off and its disk is away."""
        result = super().migrate_disk_and_power_off(context, instance, *args, **kwargs)  # type: ignore[misc]
        self._pond_release(instance)
        self._pond_give_back(instance)
        return result

    def rebuild(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Note that the next destroy is half of a rebuild, which keeps its slices: the claim stays the same."""
        if not kwargs.get("evacuate", False):
            with self._pond_lock:
                self._pond_rebuilding.add(instance.uuid)
        return super().rebuild(context, instance, *args, **kwargs)  # type: ignore[misc]

    def destroy(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Release once the guest is gone, unless it is to come back at once."""
        with self._pond_lock:
            rebuilding = instance.uuid in self._pond_rebuilding and instance.task_state == task_states.REBUILDING
            self._pond_rebuilding.discard(instance.uuid)
            kept = rebuilding or instance.uuid in self._pond_rebooting - self._pond_given_up
        result = super().destroy(context, instance, *args, **kwargs)  # type: ignore[misc]
        if not kept:
            self._pond_release(instance)
            self._pond_give_back(instance)
        return result

    # The host's memory.

    def update_provider_tree(self, provider_tree: Any, nodename: str, allocations: Any = None) -> None:
        """Keep what the host lends to other hosts out of MEMORY_MB; offer its room for mirrors."""
        before = provider_tree.data(nodename).inventory
        super().update_provider_tree(provider_tree, nodename, allocations=allocations)  # type: ignore[misc]
        lent = self.lent_memory.read(nodename)
        inventory = provider_tree.data(nodename).inventory
        provider_tree.update_inventory(nodename, lent_inventory.reserve(inventory, before, lent))
        self._pond_offer_mirrors(provider_tree, nodename, before)

    def get_available_resource(self, nodename: str) -> Any:
        """Tell the scheduler that guests of any flavor may have pool memory here; end those that cannot go on."""
        data = super().get_available_resource(nodename)  # type: ignore[misc]
        data["stats"] = {**(data.get("stats") or {}), stats.BY_CLAIM: "1"}
        self._pond_end_lost_guests(nodename)
        return data

    # Live migration.

    def check_source_migrate_data_at_dest(
        self, ctxt: Any, instance: Any, migrate_data: Any, migration: Any, limits: Any, allocs: Any
    ) -> Any:
        """Refuse a live migration that would change the running guest's NUMA nodes; raises MigrationPreCheckError."""
        self._pond_plan_move(ctxt, instance, allocs)
        return super().check_source_migrate_data_at_dest(  # type: ignore[misc]
            ctxt, instance, migrate_data, migration, limits, allocs
        )

    def pre_live_migration(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Attach at the destination, as many slices per node as at the source, before the guest's XML is used there.

        Remote memory is borrowed anew, and its pages are handed over from the source's data plane.
        """
        attachment, arrives = self._pond_attach_for_move(context, instance), False
        try:
            arrives = self._pond_await_move(instance, attachment)
            migrate_data = super().pre_live_migration(context, instance, *args, **kwargs)  # type: ignore[misc]
        except Exception:
            if attachment:
                self._pond_release(instance)
            if arrives:
                self._pond_give_back(instance)
            raise
        if attachment:
            # Set, it also makes Nova clean up at the destination after a failure on shared storage.
            migrate_data.dst_numa_info = objects.LibvirtLiveMigrateNUMAInfo(
                cpu_pins={}, cell_pins=self._pond_cell_pins(attachment)
            )
        return migrate_data

    def post_live_migration(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Release at the source: the guest runs at the destination."""
        try:
            return super().post_live_migration(context, instance, *args, **kwargs)  # type: ignore[misc]
        finally:
            self._pond_release(instance)
            self._pond_give_back(instance)

    def rollback_live_migration_at_source(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Have the guest's memory be this host's again: it runs on here."""
        self._pond_take_back(instance)
        return super().rollback_live_migration_at_source(context, instance, *args, **kwargs)  # type: ignore[misc]

    def rollback_live_migration_at_destination(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Release at the destination: the guest runs on at the source."""
        try:
            return super().rollback_live_migration_at_destination(  # type: ignore[misc]
                context, instance, *args, **kwargs
            )
        finally:
            self._pond_release(instance)
            self._pond_give_back(instance)

    # Helpers.

    @contextlib.contextmanager
    def _pond_guest(
        self,
        context: Any,
        instance: Any,
        allocations: Mapping[str, Any] | None,
        migration: Any = None,
        *,
        made_here: bool = False,
    ) -> Iterator[None]:
        """Have pool and remote memory there while a guest is made; what is new of it goes back when that fails.

        `made_here`: it did not run here with another claim, so that one without a claim is no question to the agent.
        """
        uuid = instance.uuid
        if uuid in self._pond_building:
            yield
            return
        claim = self._pond_claim_or_error(context, instance, allocations, migration)
        attachment, is_new = None, False
        if claim is not None or not made_here:
            attachment, is_new = self._pond_ensure(instance, claim, again=not allocations, sure=migration is not None)
        borrowed = False
        try:
            borrowed = self._pond_borrow(instance, patient=not allocations)
            self._pond_building[uuid] = attachment
            yield
        except Exception:
            if is_new:
                self._pond_release(instance)
            if borrowed:
                self._pond_give_back(instance)
            raise
        finally:
            self._pond_building.pop(uuid, None)
            self._pond_given_up.discard(uuid)

    @contextlib.contextmanager
    def _pond_kept(self, instance: Any) -> Iterator[None]:
        """Let destroy keep a guest's pool memory (hard reboot)."""
        with self._pond_lock:
            self._pond_rebooting.add(instance.uuid)
        try:
            yield
        finally:
            with self._pond_lock:
                self._pond_rebooting.discard(instance.uuid)

    def _pond_ensure(self, instance: Any, claim: Claim, *, again: bool, sure: bool) -> tuple[Attachment | None, bool]:
        """Return the attachment that fits the claim, and whether it is new; raises PoolMemoryUnavailable.

        `again`: a guest that was here is started; a build has another host to go to. `sure`: nothing but its claim says
        what it is to have.
        """
        if isinstance(claim, Exception):
            if isinstance(claim, PoolMemoryUnavailable) and (sure or not again):
                raise claim
            return self._pond_held(instance, claim, patient=again), False
        self._pond_refuse_numa(instance, claim)
        present = self._pond_held(instance, claim, patient=again)
        if present and claim and present.pool_mib == claim.pool_mib and present.pool_uuid in claim.pools:
            return present, False
        if present:
            LOG.info("It holds %d MiB that it no longer claims", present.pool_mib, instance=instance)
            if claim is None and again and not sure:
                self._pond_given_up.add(instance.uuid)  # it may run yet: they go with its process
                return None, False
            if not self._pond_release(instance):
                raise PoolMemoryUnavailable(reason="slices that it no longer claims are in use; stop the guest first")
        return (self._pond_attach(instance, claim, patient=again), True) if claim else (None, False)

    def _pond_attach(
        self,
        instance: Any,
        claim: PoolClaim,
        shape: tuple[int, ...] | None = None,
        *,
        source: str = "",
        patient: bool = False,
    ) -> Attachment:
        return self.pool_memory.attach(
            self._pond_node()[1],
            instance.uuid,
            claim,
            patient=patient,
            guest_mib=instance.flavor.memory_mb,
            project_id=instance.project_id or "",
            user_id=instance.user_id or "",
            shape=shape,
            source=source,
        )

    def _pond_release(self, instance: Any) -> bool:
        return self.pool_memory.release(self._pond_node()[1], instance.uuid)

    def _pond_refuse_numa(self, instance: Any, claim: PoolClaim | None) -> None:
        if claim is not None and instance.numa_topology is not None:
            reason = f"it claims {claim.pool_mib} MiB of pool memory. {flavors.NUMA}; or set pond:policy=local"
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=reason)

    def _pond_plan_move(
        self, context: Any, instance: Any, allocs: Mapping[str, Any] | None
    ) -> tuple[PoolClaim | None, Attachment | None]:
        """Return the claim here and what the guest holds at its source, which fit; raises MigrationPreCheckError."""
        check_move(instance)
        try:
            claim = self._pond_claim_for_move(context, instance, allocs)
            self.pool_memory.hear_of_revocations(self._pond_node()[1])
            ask = self.pool_memory.find if claim else self.pool_memory.look_at_source
            source = ask(instance.node, instance.uuid)
            if isinstance(claim, Exception):
                if source:
                    raise claim
                claim = None
            claims.check_move(source.pool_mib if source else None, claim)
        except Conflict as error:
            raise exception.MigrationPreCheckError(reason=error.message) from error
        except PoolMemoryUnavailable as error:
            raise exception.MigrationPreCheckError(reason=str(error)) from error
        return claim, source

    def _pond_takes_over(self, context: Any, instance: Any, source: Attachment) -> bool:
        """Return whether a guest's slices may be handed over to this host; of drivers that need not copy them."""
        del context, instance, source
        return False

    def _pond_await_guest(self, instance: Any) -> None:
        """Have the guest's QEMU here leave out what was handed over; raises MigrationPreCheckError, with all undone."""
        try:
            self.pool_memory.await_guest(self._pond_node()[1], instance.uuid)
        except PoolMemoryUnavailable as error:
            self._pond_release(instance)
            raise exception.MigrationPreCheckError(reason=str(error)) from error

    def _pond_attach_for_move(self, context: Any, instance: Any) -> Attachment | None:
        claim, source = self._pond_plan_move(context, instance, None)
        if source is None:
            return None
        ask = self.pool_memory.find if claim else self.pool_memory.look
        if ask(self._pond_node()[1], instance.uuid):  # of an earlier attempt
            self._pond_release(instance)
        if claim is None:
            return None
        handed = instance.node if self._pond_takes_over(context, instance, source) else ""
        try:
            attachment = self._pond_attach(instance, claim, claims.shape_of(source.extents), source=handed)
        except PoolMemoryUnavailable as error:
            raise exception.MigrationPreCheckError(reason=str(error)) from error
        if [(b.kind, b.size_mib) for b in attachment.backings] != [(b.kind, b.size_mib) for b in source.backings]:
            self._pond_release(instance)
            raise exception.MigrationPreCheckError(
                reason="the destination backs pool memory otherwise than the source (kind or sizes); migrate it cold"
            )
        if attachment.handed:
            self._pond_await_guest(instance)
        return attachment
