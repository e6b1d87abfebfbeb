"""Writing the kernel's tiering settings, by oslo.privsep. An agent that is root does it without a helper process."""

import os

from oslo_privsep import capabilities, priv_context

from pondstack_agent.host import sysfs_write

context = priv_context.PrivContext(
    "pondstack_agent",
    cfg_section="tiering_privsep",
    pypath=f"{__name__}.context",
    # Attributes of root; kernel.numa_balancing asks for the second.
    capabilities=[capabilities.CAP_DAC_OVERRIDE, capabilities.CAP_SYS_ADMIN],
)
if os.geteuid() == 0:
    context.set_client_mode(False)

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
