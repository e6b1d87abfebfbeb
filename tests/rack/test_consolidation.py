"""Plans on the rack: a host is drained by a real live migration and opened again; a dry run says who takes no part."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from pondstack_rack.cloud_client import read_openrc
from pondstack_rack.demo import demo
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat
from tests.rack.local_guest import SLOTS, LocalGuest

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

SETTLE_SECONDS = 60.0
PLAN_SECONDS = 400


class Openstack:
    """The command line of the rack's operator."""

    def __init__(self, rack: Rack) -> None:
        self._environment = os.environ | read_openrc(rack.layout.root / "openrc")

    def __call__(self, *words: str, status: int = 0) -> Any:
        """Return what `openstack memory` answers."""
        command = [program("openstack"), "memory", *words, "-f", "json"]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=2 * PLAN_SECONDS, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stdout) if status == 0 else done.stderr


@pytest.fixture(scope="module")
def openstack(rack: Rack) -> Openstack:
    return Openstack(rack)


@pytest.fixture(scope="module")
def guest(rack: Rack) -> Iterator[LocalGuest]:
    tenant = rack.connection(keystone.TENANT)
    facts = demo.run(rack.layout, rack.connection(), tenant, print)
    yield LocalGuest(rack, facts.server)
    tenant.compute.delete_server(facts.server)
    tenant.compute.wait_for_delete(tenant.compute.get_server(facts.server), wait=SETTLE_SECONDS)


def service(rack: Rack, host: str) -> Any:
    [found] = [item for item in rack.connection().compute.services(binary="nova-compute") if item.host == host]
    return found


def test_a_host_is_drained_by_a_live_migration_and_restored(
    rack: Rack, guest: LocalGuest, openstack: Openstack
) -> None:
    beat(guest.admin, guest.server, SLOTS + 2)
    former = guest.host
    plan = openstack("host", "drain", former, "--wait", "--timeout", str(PLAN_SECONDS))
    assert (plan["state"], plan["kind"], plan["migrations"]) == ("done", "drain", 1)
    assert guest.host != former
    guest.goes_on()
    found = service(rack, former)
    assert (found.status, found.disabled_reason) == ("disabled", f"pondstack plan {plan['uuid']}")
    assert openstack("host", "restore", former, "--wait")["state"] == "done"
    assert service(rack, former).status == "enabled"


def test_a_drain_that_finds_no_room_is_undone(rack: Rack, guest: LocalGuest, openstack: Openstack) -> None:
    """The other host is disabled by somebody else, who finds it so afterwards."""
    [other] = [host for host in rack.layout.libvirt_hosts if host != guest.host]
    compute = rack.connection().compute
    compute.disable_service(service(rack, other), disabled_reason="a disk")
    try:
        error = openstack("host", "drain", guest.host, "--wait", "--timeout", str(PLAN_SECONDS), status=1)
        assert "ended as failed" in error
        assert service(rack, guest.host).status == "enabled"
        assert service(rack, other).disabled_reason == "a disk"
        assert "but others: a disk" in openstack("host", "restore", other, "--wait", status=1)
    finally:
        compute.enable_service(service(rack, other))
    guest.goes_on()


def test_a_plan_is_a_dry_run_that_says_who_takes_no_part(guest: LocalGuest, openstack: Openstack) -> None:
    def known() -> bool:
        shown = openstack("plan", "create", "--afterwards", "keep")
        return not any("CPU load is unknown" in line for line in shown["left_out_text"] if line.startswith("fake"))

    assert wait_until(known, SETTLE_SECONDS, 1.0), "fake computes play their load"
    plan = openstack("plan", "create", "--afterwards", "keep", "--most-emptied", "1")
    assert plan["state"] == "proposed"
    assert "synthetic" in plan["inputs_text"]
    before = guest.host
    assert openstack("plan", "cancel", plan["uuid"])["state"] == "cancelled"
    assert guest.host == before


def test_frozen_consolidation_applies_nothing(openstack: Openstack) -> None:
    assert openstack("consolidation", "freeze", "--reason", "a test")["frozen"] is True
    try:
        plan = openstack("plan", "create", "--afterwards", "keep")
        assert "frozen" in openstack("plan", "apply", plan["uuid"], status=1)
    finally:
        assert openstack("consolidation", "thaw")["frozen"] is False
