"""`pondstack-partition make|show|undo`: the partition of this host's memory, by hand.

make: confine what is no guest to local memory, and give those who start guests a local memory policy; services that
lack it are restarted, guests run on. show: what may have pool memory and was not given any; exits with 1 when there is
something. undo: remove all of it, before pondstack is uninstalled.
"""

import sys
from collections.abc import Collection
from pathlib import Path

from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.domain.backing import NODE
from pondstack.domain.errors import PondError
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.partition import Partition

_COMMAND = cfg.StrOpt("command", positional=True, required=True, choices=["make", "show", "undo"], help="What to do.")


def configure(arguments: list[str]) -> cfg.ConfigOpts:
    """Read the agent's configuration and the command; exits with a usage error."""
    conf = cfg.ConfigOpts()
    agent_conf.register_opts(conf)
    conf.register_cli_opt(_COMMAND)
    conf(arguments, project="pondstack", prog="pondstack-partition")
    return conf


def holders(state_dir: Path) -> set[str]:
    """Return the consumers on record with memory of the pool's node; the folder need not be there."""
    if not state_dir.is_dir():
        return set()
    return Allocations(state_dir, lambda _name: None).consumers(NODE)


def run(command: str, partition: Partition, holders: Collection[str]) -> int:
    """Do it and say what was done; 1 when something may still have pool memory that is none of its own.

    `holders`: the consumers that have pool memory.
    """
    if command != "show":
        changed = partition.undo() if command == "undo" else partition.make(restart=True)
        print("\n".join(f"changed: {item}" for item in changed) or "nothing to change")
    if command == "undo":
        return 0
    gaps = partition.gaps(holders)
    print("\n".join(f"open: {gap}" for gap in gaps) or "closed: pool memory is for guests that were given it")
    return 1 if gaps else 0


def main() -> int:
    """Run the command; 1 when it failed or the partition is open."""
    conf = configure(sys.argv[1:])
    try:
        return run(conf.command, Partition.from_conf(conf), holders(Path(conf.agent.state_dir)))
    except PondError as error:
        print(f"pondstack-partition: {error.message}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
