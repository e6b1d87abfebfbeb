"""Guests with remote memory under libvirt: each start makes the process, has it served, and only then runs it."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import nova.conf
from nova import exception
from nova.compute import power_state
from nova.network import model
from oslo_log import log as logging
from oslo_service import loopingcall

from pondstack_nova import pins
from pondstack_nova.compute.remote import node as remote_node
from pondstack_nova.compute.remote.left_out import LeftOutMemory
from pondstack_nova.compute.remote.life import remote_mib_of
from pondstack_nova.compute.remote.memory import RemoteMemoryUnavailable

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_SOURCES = {"rbd": "network", "lvm": "block"}
"""What disks of images are, by [libvirt] images_type; files else."""


class RemoteGuests(LeftOutMemory):
    """Mixin of PondLibvirtDriver, before PoolMemoryLifecycle."""

    disk_cachemode: str
    disk_cachemodes: dict[str, str]
    _host: Any

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)  # type: ignore[call-arg]
        self._pond_attaching = threading.local()

    def _pond_no_remote(self) -> str | None:
        if CONF.libvirt.file_backed_memory > 0:
            return "[libvirt] file_backed_memory is set"
        if not CONF.pondstack.emulator:
            return "[pondstack] emulator is not set"
        mode = self.disk_cachemodes.get(_SOURCES.get(CONF.libvirt.images_type, "file"), self.disk_cachemode)
        local = CONF.libvirt.images_type != "rbd"
        if local and mode in remote_node.DIRECT:
            return f"disks have cache mode {mode}, which is O_DIRECT; set {remote_node.CACHEMODES}"
        return None

    def _create_guest(
        self,
        context: Any,
        xml: str,
        instance: Any,
        power_on: bool = True,
        pause: bool = False,
        post_xml_callback: Any = None,
    ) -> Any:
        """Make the process, have its memory served, then run it: no page is touched before."""
        remote = bool(remote_mib_of(instance)) and (power_on or pause)
        guest = super()._create_guest(  # type: ignore[misc]
            context,
            xml,
            instance,
            power_on=power_on,
            pause=pause or remote,
            post_xml_callback=post_xml_callback,
        )
        if not remote:
            return guest
        try:
            self._pond_extend(instance)  # type: ignore[attr-defined]
            if not pause:
                guest.resume()
        except Exception:
            LOG.error("It is not served its remote memory, and ends", instance=instance)
            with contextlib.suppress(Exception):
                guest.poweroff()
            raise
        return guest

    def _soft_reboot(self, instance: Any) -> bool:
        """Shut a guest with remote memory down, and say that its process is to be made anew: it has to be served."""
        if not remote_mib_of(instance):
            return bool(super()._soft_reboot(instance))  # type: ignore[misc]
        guest = self._host.get_guest(instance)
        if guest.get_power_state(self._host) == power_state.RUNNING:
            guest.shutdown()
            self._pond_wait_until_off(instance)
        return False

    def _pond_wait_until_off(self, instance: Any) -> None:
        """Wait for a guest to shut down, as long as Nova does."""
        off = (power_state.SHUTDOWN, power_state.CRASHED)

        def look() -> None:
            if self._host.get_guest(instance).get_power_state(self._host) in off:
                raise loopingcall.LoopingCallDone

        timer = loopingcall.FixedIntervalWithTimeoutLoopingCall(look)
        with contextlib.suppress(loopingcall.LoopingCallTimeOut):
            timer.start(interval=0.5, timeout=CONF.libvirt.wait_soft_reboot_seconds).wait()

    # What would reach its memory behind the page tables.

    def _pond_refuse_port(self, instance: Any, vif: Any) -> None:
        """Raise InterfaceAttachFailed for a port that would reach remote memory behind the page tables."""
        behind = vif.get("vnic_type") in pins.VNIC_TYPES or vif.get("type") == model.VIF_TYPE_VHOSTUSER
        if behind and remote_mib_of(instance):
            what = f"{vif.get('vnic_type')}, {vif.get('type')}"
            LOG.error("A port (%s) would pin remote memory; %s", what, pins.REMOTE_LEGAL, instance=instance)
            raise exception.InterfaceAttachFailed(instance_uuid=instance.uuid)

    def attach_volume(self, context: Any, connection_info: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse a disk with O_DIRECT for a guest with remote memory; raises RemoteMemoryUnavailable."""
        with self._pond_no_direct_disk(instance):
            return super().attach_volume(context, connection_info, instance, *args, **kwargs)  # type: ignore[misc]

    def swap_volume(
        self, context: Any, old_connection_info: Any, new_connection_info: Any, instance: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Refuse a disk with O_DIRECT for a guest with remote memory; raises RemoteMemoryUnavailable."""
        with self._pond_no_direct_disk(instance):
            return super().swap_volume(  # type: ignore[misc]
                context, old_connection_info, new_connection_info, instance, *args, **kwargs
            )

    @contextlib.contextmanager
    def _pond_no_direct_disk(self, instance: Any) -> Iterator[None]:
        self._pond_attaching.refused = bool(remote_mib_of(instance))
        try:
            yield
        finally:
            self._pond_attaching.refused = False

    def _get_volume_config(self, *args: Any, **kwargs: Any) -> Any:
        disk = super()._get_volume_config(*args, **kwargs)  # type: ignore[misc]
        obstacle = remote_node.direct_disk([disk]) if getattr(self._pond_attaching, "refused", False) else None
        if obstacle:
            raise RemoteMemoryUnavailable(reason=f"the guest would get {obstacle}; {pins.REMOTE_LEGAL}")
        return disk
