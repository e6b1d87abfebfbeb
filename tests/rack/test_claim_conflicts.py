"""Two hosts claim of one pool at the same time: Placement refuses some of these writes, and Nova sends them again.

Placement tries ten times by itself, in one transaction in which the host's generation is its own already: where another
host had changed the pool's, each of the ten fails. Nova leaves the claim of a live migration behind then.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.cloud_client import Cloud
from pondstack_rack.processes import environment
from pondstack_rack.rack import Rack
from tests.fixtures.seeds import by_night

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 2
ROUNDS = by_night(60, 15)
MOST_TRIES = 5


def refused(rack: Rack, cloud: Cloud, retries: str) -> int:
    """Return how many writes were refused to hosts that claimed at the same time."""
    hosts = sorted(cloud.fake_hosts().values())[:WRITERS]
    pool = next(pool["uuid"] for pool in cloud.pools())
    running = []
    for host in hosts:
        command = [sys.executable, "-W", "ignore", "-m", "tests.rack.nova_claims", str(rack.layout.etc / "nova.conf")]
        words = [*command, retries, host, pool, RESOURCE_CLASS, str(ROUNDS)]
        running.append(
            subprocess.Popen(
                words, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    found = 0
    for process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        found += int(out.split()[-1])
    return found


def test_what_placement_refuses_is_sent_again(rack: Rack) -> None:
    cloud = Cloud.of_rack(rack.layout.root)
    without = 0
    for _ in range(MOST_TRIES):
        without += refused(rack, cloud, "none")
        if without:
            break
    assert without, "no two writes met: this shows nothing"
    assert refused(rack, cloud, "as configured") == 0
