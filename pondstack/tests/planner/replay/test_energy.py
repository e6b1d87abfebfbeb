"""Energy: hand-made fleets, Table 3, and the order of the systems."""

import numpy as np
import pytest

from pondstack.domain.energy import PROFILES
from pondstack.planner.energy.consolidation import consolidate
from pondstack.planner.energy.fleet import Fleet, Guest
from pondstack.planner.energy.simulation import power_percent, simulate
from pondstack.planner.energy.systems import SYSTEMS
from pondstack.planner.settings import Settings

GIB = 1024


def guest(name: str, mib: int, *, working: int = GIB, used: float = 0.2, idle: bool = False) -> Guest:
    """Return a server of one vCPU."""
    return Guest(name, 1.0, used, mib, working, idle)


def make_fleet(system: str, *residents: list[Guest], mib: int = 8 * GIB) -> Fleet:
    """Return hosts of 10 vCPUs with these servers, all of their memory local."""
    fleet = Fleet(len(residents), 10, mib, SYSTEMS[system], Settings())
    for host, guests in zip(fleet.hosts, residents, strict=True):
        for item in guests:
            fleet.put(item, host, item.mib)
    return fleet


def test_table_3() -> None:
    """Zombieland, Table 3: idle with the card in use, Sz by its equation 1, S3 with the card."""
    assert PROFILES["hp"].idle_percent == 53.84
    assert PROFILES["hp"].asleep_percent["sz"] == pytest.approx((53.84 - 52.20) + (11.03 - 4.23) + 4.23)
    assert PROFILES["dell"].asleep_percent["sz"] == pytest.approx((44.77 - 42.33) + (8.71 - 1.97) + 1.97)
    assert (PROFILES["hp"].asleep_percent["s3"], PROFILES["dell"].asleep_percent["s3"]) == (11.03, 8.71)
    assert PROFILES["hp"].awake(0.0) == 53.84
    assert PROFILES["hp"].awake(0.5) == pytest.approx(76.92)
    assert PROFILES["hp"].awake(2.0) == 100.0


def test_neat_empties_what_fits_whole() -> None:
    """3 + 4 GiB fit on 8: one host is suspended. 5 + 4 do not: both stay awake."""
    fleet = make_fleet("neat", [guest("a", 3 * GIB)], [guest("b", 4 * GIB)])
    consolidate(fleet, Settings())
    assert sorted(host.awake for host in fleet.hosts) == [False, True]
    assert fleet.remote_mib == 0
    assert power_percent(fleet, Settings()) == pytest.approx(53.84 + 46.16 * 0.04 + 11.03)
    fleet = make_fleet("neat", [guest("a", 5 * GIB)], [guest("b", 4 * GIB)])
    consolidate(fleet, Settings())
    assert all(host.awake for host in fleet.hosts)


def test_zombies_leave_memory_behind() -> None:
    """Of 5 GiB with a working set of 2, 30 % of that goes along; the host that sleeps serves the rest."""
    fleet = make_fleet("zombie", [guest("a", 5 * GIB, working=2 * GIB)], [guest("b", 4 * GIB, used=0.3)])
    consolidate(fleet, Settings())
    assert fleet.guests["a"].local_mib == 615  # 614.4 rounded up
    assert fleet.remote_mib == 5 * GIB - 615
    assert power_percent(fleet, Settings()) == pytest.approx(53.84 + 46.16 * 0.05 + 12.67)


def test_oasis_moves_idle_servers_in_part_with_all_of_their_working_set() -> None:
    """The idle one leaves 3 GiB to a memory server, which takes 40 % of a host; one that is busy keeps its host."""
    fleet = make_fleet("oasis", [guest("a", 5 * GIB, working=2 * GIB, used=0.0, idle=True)], [guest("b", 4 * GIB)])
    consolidate(fleet, Settings())
    assert fleet.guests["a"].local_mib == 2 * GIB
    assert power_percent(fleet, Settings()) == pytest.approx(53.84 + 46.16 * 0.02 + 11.03 + 40.0)
    fleet = make_fleet("oasis", [guest("a", 5 * GIB)], [guest("b", 4 * GIB)])
    consolidate(fleet, Settings())
    assert all(host.awake for host in fleet.hosts)


def test_a_start_wakes_a_host_where_no_other_has_room() -> None:
    """All memory has to be local but for zombies, where half is enough; more than all hosts have is refused."""
    for system, awake in (("neat", [True, True]), ("zombie", [True, False])):
        fleet = make_fleet(system, [guest("a", 6 * GIB)], [])
        fleet.hosts[1].awake = False
        fleet.start(guest("b", 4 * GIB))
        assert [host.awake for host in fleet.hosts] == awake
    fleet.start(guest("c", 7 * GIB))
    assert fleet.rejected == 1


def test_no_memory_is_lost_and_no_host_holds_more_than_it_has() -> None:
    """Over many steps of each system, by chance."""
    draw = np.random.default_rng(5)
    for system in SYSTEMS:
        fleet = Fleet(6, 8, 16 * GIB, SYSTEMS[system], Settings())
        for step in range(60):
            fleet.start(guest(f"s{step}", int(draw.integers(1, 8)) * GIB, working=GIB // 2, used=draw.random() / 4))
            fleet.end(f"s{step - int(draw.integers(3, 30))}")
            consolidate(fleet, Settings())
            for host in fleet.hosts:
                assert host.local_mib == sum(item.local_mib for item in host.guests.values()) <= fleet.mib
                assert host.cpu == pytest.approx(sum(item.cpu for item in host.guests.values()))
                assert host.awake or not host.guests
            assert sum(item.mib for item in fleet.guests.values()) <= 6 * fleet.mib


def test_the_order_of_figure_10(make_history) -> None:
    """Memory demand twice CPU demand, many idle servers: zombies save more than Oasis, Oasis more than Neat."""
    draw = np.random.default_rng(3)
    rows = [(60 * number, 60 * number + int(draw.integers(3600, 40_000)), 1, 2 * GIB) for number in range(1500)]
    history = make_history(rows, untouched=0.9, counted_from=30_000, last=90_000)
    history.load_percent[:] = np.where(draw.random(1500) < 0.95, 0.5, 30.0)
    settings = Settings(vcpus_per_socket=16, gib_per_host=32)
    used = {name: simulate(history, "modified", system, settings).kwh for name, system in SYSTEMS.items()}
    assert used["zombie"] < used["oasis"] < used["neat"] < used["none"]
