"""An operator of the rack: plans, hosts that sleep and lend, by the command line; what comes of it, by the APIs."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import psutil
from keystoneauth1.adapter import Adapter

from pondstack_rack.cloud_client import read_openrc
from pondstack_rack.daemon import Daemon
from pondstack_rack.demo.story import Broken, Say
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until

COMMAND_SECONDS = 600.0
PLAN_SECONDS = 900.0
TOLD_SECONDS = 90.0
"""So long it may take until controllers know what hosts play."""
POLL_SECONDS = 0.3
MICROVERSION = "1.20"
Json = dict[str, Any]


class Operator:
    """One. `say` hears of each command."""

    def __init__(self, rack: Rack, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._rack, self._say, self._clock = rack, say, clock
        self.at_lending: tuple[str, str] | None = None
        session = keystone.session(rack.layout)
        self._memory = Adapter(session, "memory", region_name="RegionOne", default_microversion=MICROVERSION)
        self._nova = Adapter(session, "compute", region_name="RegionOne", default_microversion="2.53")
        self._environment = os.environ | read_openrc(rack.layout.root / "openrc")

    def run(self, *words: str) -> Any:
        """Run `openstack memory ...`; returns what it answers."""
        self._say(f"  $ openstack memory {' '.join(words)}")
        return self._run(*words)

    def _run(self, *words: str) -> Any:
        done = subprocess.run(
            [program("openstack"), "memory", *words, "-f", "json"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode:
            raise Broken(f"openstack memory {' '.join(words)}: {(done.stderr or done.stdout).strip()[-600:]}")
        return json.loads(done.stdout)

    def plan(self, *words: str, wanted: Callable[[Json], bool]) -> Json:
        """Have plans decided, each by what hosts say meanwhile, until one is as wanted; returns it, or the last one."""
        command = ("plan", "create", *words)
        self._say(f"  $ openstack memory {' '.join(command)}")
        last: Json = {}

        def decided() -> bool:
            nonlocal last
            if last:
                self._memory.post(f"/plans/{last['uuid']}/cancel", json={})
            last = self.plan_of(self._run(*command)["uuid"])
            return wanted(last)

        wait_until(decided, TOLD_SECONDS, 1.0)
        return last

    def plan_of(self, uuid: str) -> Json:
        """Return a plan with its actions."""
        found: Json = self._memory.get(f"/plans/{uuid}").json()
        return found

    def apply(self, uuid: str, host: str) -> tuple[Json, dict[str, float]]:
        """Carry a plan out; returns it at its end, and after how many seconds the host was in which state of sleep.

        `applied` of these: when the order was given; `moved`: when all migrations had ended. What Nova had of the host
        when it began to lend is in `at_lending`.
        """
        began = self._clock()
        self.run("plan", "apply", uuid)
        seen: dict[str, float] = {"applied": 0.0}
        last: Json = {}

        def ended() -> bool:
            nonlocal last
            last = self.plan_of(uuid)
            now = self._clock() - began
            moves = [item for item in last["actions"] if item["kind"] == "live-migrate"]
            if all(item["state"] in ("done", "failed", "skipped") for item in moves):
                seen.setdefault("moved", now)
            state = self.sleep(host).get("state")
            if state == "lending" and state not in seen:
                self.at_lending = self.service(host)
            if state:
                seen.setdefault(state, now)
            return last["state"] not in ("proposed", "running", "undoing")

        if not wait_until(ended, PLAN_SECONDS, POLL_SECONDS):
            raise Broken(f"plan {uuid} is still {last['state']} after {PLAN_SECONDS:.0f} s: {told(last)}")
        seen["ended"] = self._clock() - began
        return last, seen

    def host(self, name: str) -> Json:
        """Return a host as pondstack has it."""
        found: Json = self._memory.get(f"/hosts/{name}").json()
        return found

    def sleep(self, name: str) -> Json:
        """Return a host's newest sleep, {}: it has had none."""
        return self.host(name)["sleep"] or {}

    def lenders_of(self, consumer: str) -> dict[str, int]:
        """Return of whom a server has borrowed how many MiB."""
        found: dict[str, int] = {}
        for loan in self._memory.get(f"/loans?consumer_uuid={consumer}").json()["loans"]:
            for item in loan["buffers"]:
                if item["state"] == "online":
                    found[item["lender"]] = found.get(item["lender"], 0) + item["mib"]
        return found

    def findings(self) -> list[str]:
        """Return what an audit warns of."""
        answer = self._memory.post("/audits", json={"repair": False}).json()
        return [f"{item['code']} {item['subject']}" for item in answer["findings"] if item["severity"] != "info"]

    def service(self, name: str) -> tuple[str, str]:
        """Return status of a host's compute service, and the reason why it is disabled."""
        [found] = self._nova.get(f"/os-services?host={name}&binary=nova-compute").json()["services"]
        return found["status"], found["disabled_reason"] or ""

    def servers_on(self, name: str) -> list[str]:
        """Return the servers that Nova has on a host."""
        found = self._nova.get(f"/os-hypervisors/detail?hypervisor_hostname_pattern={name}&with_servers=true").json()
        mine = [item for item in found["hypervisors"] if item["hypervisor_hostname"] == name]
        return [server["uuid"] for item in mine for server in item.get("servers") or ()]

    def stopped(self, name: str) -> tuple[int, int]:
        """Return how many processes of a host's agent and nova-compute are stopped, and how many there are."""
        found = [self._rack.service(f"{kind}-{name}") for kind in ("pondstack-agent", "nova-compute")]
        parents = [item.process for item in found if isinstance(item, Daemon) and item.process is not None]
        own = [process for parent in parents for process in (parent, *parent.children(recursive=True))]
        return sum(process.status() == psutil.STATUS_STOPPED for process in own), len(own)


def told(plan: Json) -> str:
    """Return a plan's actions in short, with why one failed."""
    parts = [
        f"{item['kind']} {item['host']}: {item['state']} {item['reason'] or ''}".strip() for item in plan["actions"]
    ]
    return "; ".join([*parts, plan["reason"] or ""]).strip("; ")
