"""What makes a host unusable for slices of a CXL device, each with what to do about it."""

from enum import StrEnum

from pondstack.domain.errors import HostUnusable


class Failure(StrEnum):
    """The codes; the texts are below."""

    NO_DEVICE = "no_device"
    NO_WINDOW = "no_window"
    MISSING_MODULE = "missing_module"
    FOREIGN_REGION = "foreign_region"
    AUTO_ONLINE = "auto_online"
    SYSTEM_RAM = "system_ram"
    FOREIGN_DAX = "foreign_dax"
    ZONE_NORMAL = "zone_normal"
    BLOCK_SIZE = "block_size"
    NODE_WITH_CPUS = "node_with_cpus"
    SYSTEM_ANYWHERE = "system_anywhere"
    DAEMON_ANYWHERE = "daemon_anywhere"
    GUEST_ANYWHERE = "guest_anywhere"
    NO_WRITE_BACK = "no_write_back"


TEXTS = {
    Failure.NO_DEVICE: (
        "no CXL memory device has the serial number {serial:#x}, which [cxl] pools names; compare with `cxl list -M`, "
        "look for the device in `lspci` and the kernel's log"
    ),
    Failure.NO_WINDOW: (
        "no window of host addresses leads to {memdev} alone; have the firmware give each pool device a window of its "
        "own, without interleaving (see `cxl list -B -D`)"
    ),
    Failure.MISSING_MODULE: (
        "the kernel module {name} cannot be loaded ({said}); install a kernel with CXL volatile memory and dax (6.3 or "
        "newer, CONFIG_CXL_REGION, CONFIG_DEV_DAX_CXL, CONFIG_DEV_DAX_KMEM) and remove what blacklists it"
    ),
    Failure.FOREIGN_REGION: (
        "{region} over {memdev} was made by somebody else: {ways} way(s), {size} MiB, and one way with {wanted} MiB is "
        "needed; when nothing uses it, remove it with `cxl disable-region {region}` and `cxl destroy-region {region}`"
    ),
    Failure.AUTO_ONLINE: (
        "this host brings new memory online by itself ({policy}), where it can never be taken back; boot with "
        "memhp_default_state=offline (now: `echo offline > /sys/devices/system/memory/auto_online_blocks`) and remove "
        "udev rules that online memory"
    ),
    Failure.SYSTEM_RAM: (
        "{device} ({start:#x}, {size} MiB) is system memory already and not a slice of this agent's; take it back with "
        "`daxctl reconfigure-device --mode=devdax --force {device}`, then `daxctl disable-device {device}` and "
        "`daxctl destroy-device --force {device}`; at boot, keep kmem from loading before the agent"
    ),
    Failure.FOREIGN_DAX: (
        "{device} ({start:#x}, {size} MiB, driver {driver}) lies over slices and is none of this agent's; end what "
        "uses it, then `daxctl disable-device {device}` and `daxctl destroy-device --force {device}`"
    ),
    Failure.ZONE_NORMAL: (
        "{block} of {device} is online in zone {zone}, from where the kernel may never give it back; drain the host "
        "and reboot it with memhp_default_state=offline, and remove udev rules that online memory"
    ),
    Failure.BLOCK_SIZE: (
        "slices of {slice} MiB at {start:#x} do not fall on this host's memory blocks of {block} MiB; give the pool "
        "slices that are a multiple of them"
    ),
    Failure.NODE_WITH_CPUS: (
        "{device} belongs to node {node}, which has CPUs or no number of its own; have the firmware describe the CXL "
        "window as a node without CPUs (SRAT, CEDT)"
    ),
    Failure.SYSTEM_ANYWHERE: (
        "processes of the cgroup {name} may have memory of {nodes} node, and on the pool's they would keep it from "
        "going offline{made}; confine them by `pondstack-partition make` (or `systemctl set-property {name} "
        "AllowedMemoryNodes={local}`), or take it out of [cxl] system_cgroups"
    ),
    Failure.DAEMON_ANYWHERE: (
        "{name} runs without a memory policy of the nodes {local}, and each guest that it starts may have memory of "
        "{nodes} node{made}; run `pondstack-partition make`, which restarts it (guests run on), or take it out of "
        "[cxl] guest_units"
    ),
    Failure.GUEST_ANYWHERE: (
        "guest {name} has no pool memory and may take that of others: it runs with memory of {nodes} node, and is in "
        "no cgroup of its own that could be bound to {local}{made}; stop it and start it again, or move it away"
    ),
    Failure.NO_WRITE_BACK: (
        "this host cannot write its CPU caches back: pondstack_rdma._cpu_cache was not built, or knows no instruction "
        "of this CPU; install a wheel that was built with a compiler, on x86-64 or AArch64, or set [cxl] backing = kmem"
    ),
}


def failed(failure: Failure, **details: object) -> HostUnusable:
    """Return the error of a failed check: its text, and its code in brackets."""
    return HostUnusable(f"{TEXTS[failure].format(**details)} [pre-flight: {failure.value}]")
