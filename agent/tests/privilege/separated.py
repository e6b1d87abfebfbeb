"""An agent's process that was root and is no more: evaluates what it is told, a line each, and answers in JSON."""

import json
import sys
from pathlib import Path
from typing import Any

from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack_agent import separation
from pondstack_agent.drivers.cxl import privileged as cxl
from pondstack_agent.drivers.cxl import vacated
from pondstack_agent.host import mapped_files, memory_users
from pondstack_agent.mitigation import guest as guests
from pondstack_agent.mitigation import libvirt_domains
from pondstack_agent.mitigation import privileged as mitigation
from pondstack_agent.partition import privileged as partition
from pondstack_agent.telemetry import access, guest_process, privileged, untouched
from pondstack_agent.telemetry.perf import Event

__all__ = [
    "Event",
    "access",
    "cxl",
    "guest_process",
    "guests",
    "libvirt_domains",
    "mapped_files",
    "memory_users",
    "mitigation",
    "partition",
    "privileged",
    "untouched",
    "vacated",
]


def main() -> None:
    """Answer until the input ends. The first argument is the agent's file."""
    conf = cfg.ConfigOpts()
    agent_conf.register_opts(conf)
    conf([], default_config_files=[sys.argv[1]])
    separated = separation.separate(conf)
    assert separated is not None
    separated.connect()
    known: dict[str, Any] = {**globals(), "conf": conf, "Path": Path}
    for line in sys.stdin:
        print(json.dumps(_answer(line, known), default=str), flush=True)


def _answer(line: str, known: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": eval(line, known)}  # noqa: S307 - a test's own words
    except Exception as error:  # noqa: BLE001 - whatever it is, the test compares it
        return {"error": type(error).__name__, "text": str(error)}


if __name__ == "__main__":
    main()
