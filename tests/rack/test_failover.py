"""The leading controller dies (-9) while a guest runs: the other one takes over, and the guest goes on."""

from collections.abc import Iterator
from contextlib import suppress
from urllib.request import urlopen

import pytest

from pondstack_rack.demo import demo, failover
from pondstack_rack.ports import LOOPBACK
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone, pondstack_services
from pondstack_rack.wait import wait_until

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

WAIT_SECONDS = 10.0
"""How long changes may wait here: a fail-over takes about two seconds, on a machine that does nothing else."""
SETTLE_SECONDS = 60.0


@pytest.fixture
def guest(rack: Rack) -> Iterator[demo.Facts]:
    """The demonstration's guest, with memory of the pool."""
    tenant = rack.connection(keystone.TENANT)
    facts = demo.run(rack.layout, rack.connection(), tenant, print)
    yield facts
    tenant.compute.delete_server(facts.server)
    tenant.compute.wait_for_delete(tenant.compute.get_server(facts.server), wait=SETTLE_SECONDS)


def told_prometheus(rack: Rack) -> dict[str, tuple[bool, bool]]:
    """Return whether each controller says that it leads, and whether it tells of the pool; those that answer."""
    found = {}
    for name in pondstack_services.CONTROLLERS:
        url = f"http://{LOOPBACK}:{rack.layout.port(pondstack_services.controller_service(name))}/metrics"
        with suppress(OSError), urlopen(url, timeout=SETTLE_SECONDS) as answer:
            text = answer.read().decode()
            found[name] = ("pondstack_leading 1.0\n" in text, 'pondstack_slices{pool="pool0",state="online"}' in text)
    return found


def test_a_killed_leader_is_followed_by_the_other_one_and_the_guest_goes_on(rack: Rack, guest: demo.Facts) -> None:
    said: list[str] = []
    outcome = failover.run(rack, kill=True, say=said.append)
    assert failover.check(outcome) == [], said
    assert outcome.wait_seconds < WAIT_SECONDS, said
    assert outcome.guest_after is not None
    assert outcome.guest_after.server == guest.server
    assert all(service.running for service in rack.services.values())
    leads = {name: (role == "leader",) * 2 for name, role in outcome.roles.items()}
    assert wait_until(lambda: told_prometheus(rack) == leads, SETTLE_SECONDS), told_prometheus(rack)
    # What the ledger, Placement and Nova say of the guest is what they said before.
    facts = demo.look(rack.layout, rack.connection(), guest.server)
    assert demo.check(facts) == []
    assert facts.ledger["extents"] == guest.ledger["extents"]
