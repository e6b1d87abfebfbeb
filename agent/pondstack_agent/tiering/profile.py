"""`pondstack-profile`: hot, warm and cold memory of a process or VM by type of page, over time.

After Chameleon, Meta's tool (TPP): what share of its memory does a workload use within minutes, and is it anonymous,
file or tmpfs? That is what demotion can move to pool memory.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pondstack.domain.errors import HostUnusable
from pondstack_agent.host.memory_users import guests
from pondstack_agent.qemu.process import under_kvm
from pondstack_agent.tiering import heat, pagetypes
from pondstack_agent.tiering.referenced import Referenced

BLIND = (
    "process {pid} runs a guest of KVM, and the processor notes what that uses in tables that /proc does not show: "
    "what was printed would be too low"
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with a usage error."""
    parser = argparse.ArgumentParser(prog="pondstack-profile", description=__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, help="the process")
    target.add_argument("--instance", metavar="UUID", help="the VM on this host: its QEMU has -uuid UUID")
    parser.add_argument("--hot", type=float, default=60.0, metavar="SECONDS", help="hot: used within (default 60)")
    parser.add_argument("--warm", type=float, default=300.0, metavar="SECONDS", help="warm: used within (default 300)")
    parser.add_argument("--cycles", type=int, default=1, metavar="N", help="tables, one each --warm seconds; 0: no end")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each table")
    wanted = parser.parse_args(arguments)
    if not 0.1 <= wanted.hot < wanted.warm or wanted.cycles < 0:
        parser.error("--hot is 0.1 or more and less than --warm, --cycles 0 or more")
    return wanted


def check(pid: int, proc: Path = Path("/proc")) -> None:
    """Raise HostUnusable when what the process does cannot be seen."""
    if under_kvm(pid, proc):
        raise HostUnusable(BLIND.format(pid=pid))


def document(wanted: argparse.Namespace, pid: int, method: Referenced, profile: heat.Profile) -> dict[str, Any]:
    """Return one table for machines; sizes are in KiB."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "pid": pid,
        "method": method.name,
        "hot_seconds": wanted.hot,
        "warm_seconds": wanted.warm,
        "types": {kind: asdict(found) for kind, found in profile.items()},
        "cost": asdict(method.cost),
    }


def run(wanted: argparse.Namespace, pid: int, wait: Callable[[float], object], say: Callable[[str], None]) -> None:
    """Print table after table; raises HostUnusable, OSError when the process is gone or not ours to look at."""
    check(pid)
    huge = sum(item.resident_kib for item in pagetypes.of_process(pid) if item.kind == pagetypes.HUGETLB)
    method = Referenced(pid, wanted.hot, wanted.warm, wait=wait)
    if not wanted.json:
        command = Path(f"/proc/{pid}/comm").read_text().strip()
        say(f"process {pid} ({command}), method {method.name}: {method.precision}")
        say(f"hot: used within {wanted.hot:g} s, warm: within {wanted.warm:g} s, cold: in memory and not used")
    if huge:
        print(f"{huge // 1024} MiB of huge pages (hugetlbfs) are not measured", file=sys.stderr)
    begun, number = time.monotonic(), 0
    while not wanted.cycles or number < wanted.cycles:
        number += 1
        profile = method.cycle()
        if wanted.json:
            say(json.dumps(document(wanted, pid, method, profile)))
            continue
        say("\n".join(["", time.strftime("%Y-%m-%d %H:%M:%S"), heat.title(), *heat.lines(profile)]))
        cost, seconds = method.cost, time.monotonic() - begun
        say(
            f"cost: {cost.processor_seconds:.3f} s of a processor in {seconds:.1f} s "
            f"({100 * cost.processor_seconds / seconds:.2g} %), longest look {cost.longest_look_seconds:.3f} s"
        )


def main() -> int:
    """Run until all tables are printed, Ctrl-C or SIGTERM; 1 when it cannot be measured."""
    wanted = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pid = wanted.pid or guests().get(wanted.instance)
    if not pid:
        sys.exit(f"pondstack-profile: no process of this host was started with -uuid {wanted.instance}")
    try:
        run(wanted, pid, threading.Event().wait, lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        return 130
    except (HostUnusable, OSError) as error:
        reason = error.message if isinstance(error, HostUnusable) else f"process {pid}: {error.strerror or error}"
        print(f"pondstack-profile: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
