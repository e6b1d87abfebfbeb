"""Writing the kernel's tiering settings, by oslo.privsep. An agent that stays root does it without a helper process."""

from oslo_privsep import capabilities

from pondstack_agent.host import sysfs_write
from pondstack_agent.privilege.context import Context

# The attributes are root's; kernel.numa_balancing asks for this.
context = Context("tiering", __name__, [capabilities.CAP_SYS_ADMIN])

_WRITABLE = frozenset(
    {
        "/sys/kernel/mm/numa/demotion_enabled",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
        "/proc/sys/vm/watermark_scale_factor",
    }
)
_WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave/"


@context.entrypoint
def write(path: str, text: str) -> str:
    """Write one of the settings; return '' or what the kernel said."""
    weight = path.startswith(_WEIGHTS) and "/" not in path.removeprefix(_WEIGHTS)
    if path not in _WRITABLE and not weight:
        raise ValueError(f"{path} is no tiering setting")
    return sysfs_write.write(path, text)
