"""A tenant's server with remote memory, a part on disk, and a swap disk, by the flavor alone: all sides and it agree.

Its memory is verified by the guest itself, in the part of it that may be local and the one that is not, and what it has
swapped out to its disk, of which lenders have room for a half.
"""

from collections.abc import Iterator

import pytest
from openstack.exceptions import HttpException

from pondstack.domain.lending import DEFAULT_BUFFER_MIB, REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.fixtures.seeds import by_night
from tests.rack.beats import beat
from tests.rack.local_guest import SLOTS
from tests.rack.remote_guest import LENT_MIB, MOVING, MOVING_MIB, MOVING_REMOTE_MIB, SECONDS, RemoteGuest, lent

pytestmark = [pytest.mark.rack, pytest.mark.timeout(1200)]

STREAM_MIB = 24.0
"""What QEMU copies at most of a guest that moves: its devices, their memory and the firmware's."""
STAYED_MIB = 100.0
"""What at least stays with its lender when the server moves."""
PAGE_MIB = 4096 / 2**20


@pytest.fixture
def remote(rack: Rack) -> Iterator[RemoteGuest]:
    """A host lends for one server."""
    with lent(rack, LENT_MIB) as made:
        yield made


@pytest.fixture
def moving(rack: Rack) -> Iterator[RemoteGuest]:
    """A host lends for a server without a swap disk, and as much again: while it moves, Nova claims it twice."""
    with lent(rack, 2 * MOVING_REMOTE_MIB) as made:
        yield made


def test_a_server_with_remote_memory_and_a_swap_disk(remote: RemoteGuest) -> None:
    """Boot, by night stop and start and a hard reboot, a live migration that is refused, delete."""
    remote.boot()
    remote.verifies()
    remote.all_agree()
    assert remote.view()["extension"]["counters"]["evictions"] > 0, "its pages do leave, and come back"

    if by_night(1, 0):
        remote.admin.compute.stop_server(remote.server)
        remote.becomes("SHUTOFF")
        assert remote.buffers().count("online") * DEFAULT_BUFFER_MIB == LENT_MIB, "it keeps them"
        remote.admin.compute.start_server(remote.server)
        remote.starts()
        remote.all_agree()
        remote.admin.compute.reboot_server(remote.server, "HARD")
        remote.starts()
        remote.all_agree()

    host = remote.host
    try:
        remote.admin.compute.live_migrate_server(remote.server, host=None, block_migration="auto")
    except HttpException as refusal:
        assert refusal.status_code in (400, 409)  # noqa: PT017 - whether it is told at once is Nova's matter
    remote.becomes("ACTIVE")
    assert remote.host == host
    told = beat(remote.admin, remote.server, 1)
    assert beat(remote.admin, remote.server, told["count"] + 2)["errors"] == 0, "it runs on"

    agent_host, server = remote.host, remote.server
    remote.admin.compute.delete_server(server)
    remote.admin.compute.wait_for_delete(remote.admin.compute.get_server(server), wait=int(SECONDS))
    assert wait_until(lambda: set(remote.buffers()) == {"free"}, SECONDS), remote.buffers()
    assert wait_until(lambda: remote.agents.get_remote(agent_host, consumer_uuid=server) is None, SECONDS)
    assert wait_until(lambda: remote.agents.get_swap(agent_host, consumer_uuid=server) is None, SECONDS)
    assert remote.agents.get_mirror_room(agent_host)["used_mib"] == 0
    classes = (REMOTE_CLASS, MIRROR_CLASS)  # which nova-compute gives back once the API knows no such server any more
    assert wait_until(lambda: [remote.cloud.claimed_mib(server, name) for name in classes] == [0, 0], SECONDS)
    remote.server = ""


def test_a_server_moves_live(moving: RemoteGuest) -> None:
    """QEMU copies none of its memory, the data planes none of what lenders have, and each word of it is as before."""
    moving.boot(MOVING)
    count = beat(moving.admin, moving.server, SLOTS + 1)["count"]
    source = moving.host
    before = moving.places()
    assert wait_until(lambda: moving.view()["extension"]["evicted_mib"] >= STAYED_MIB, SECONDS), moving.view()
    moving.admin.compute.live_migrate_server(moving.server, host=None, block_migration="auto")
    moving.becomes("ACTIVE")
    assert moving.host != source, moving.migrations()
    assert 0 < moving.copied_mib() < STREAM_MIB
    count = beat(moving.admin, moving.server, count + 1)["count"]
    after = beat(moving.admin, moving.server, count + SLOTS)
    assert after["errors"] == 0, "the guest read something else than it had written"

    agents, server = moving.agents, moving.server
    assert wait_until(lambda: moving.view()["extension"]["handover"] is None, SECONDS), moving.view()
    assert wait_until(lambda: agents.get_remote(source, consumer_uuid=server) is None, SECONDS)
    served = moving.view()["extension"]
    print(served)
    moved = {name: value * PAGE_MIB for name, value in served["store"].items()}
    assert moved["handed_copied"] == 0, "no page that a lender has was copied, over no channel"
    assert moved["handed"] >= STAYED_MIB
    assert moved["copied_resident"] + moved["copied_stored"] <= MOVING_MIB - moved["handed"]
    assert moving.places() == before, "it has the same buffers of the same lender"
    assert (served["memory_mib"], served["local_mib"]) == (MOVING_MIB, MOVING_MIB - MOVING_REMOTE_MIB)
    assert served["state"] == "serving"
    assert moving.buffers().count("online") * DEFAULT_BUFFER_MIB == MOVING_REMOTE_MIB
    assert moving.cloud.claimed_mib(server, REMOTE_CLASS) == MOVING_REMOTE_MIB
