"""Made-up traces: the same for the same guest, like those of its project, only ever less untouched; and they say so."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.domain.telemetry import Source
from pondstack.prediction.counters import COUNTERS
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox
from pondstack_agent.telemetry.synthetic import (
    PlayedGuest,
    SyntheticLoadLook,
    SyntheticLook,
    counters,
    untouched_mib,
    used_cpus,
)

VM = "0635cccd-1e78-5473-b66a-bacffc433357"
GUEST = PlayedGuest(VM, "blue", 4096, 1024, 0.0)


def share(guest: PlayedGuest) -> float:
    return untouched_mib(replace(guest, age_seconds=1e6)) / guest.memory_mib


def test_a_trace_is_that_of_its_guest_on_every_host_and_python() -> None:
    assert share(GUEST) == pytest.approx(0.600695, abs=1e-6)
    assert share(replace(GUEST, memory_mib=8192)) == pytest.approx(share(GUEST))


def test_a_guest_touches_more_and_more() -> None:
    ages = [0.0, 5.0, 60.0, 600.0, 86400.0]
    found = [untouched_mib(replace(GUEST, age_seconds=age)) for age in ages]
    assert found[0] == 4096
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(ages)


def test_guests_of_a_project_are_alike_and_projects_differ() -> None:
    shares = {
        project: [share(replace(GUEST, consumer_uuid=str(uuid4()), project_id=project)) for _ in range(20)]
        for project in map(str, range(30))
    }
    assert all(max(found) - min(found) <= 0.16 for found in shares.values())
    means = [sum(found) / len(found) for found in shares.values()]
    assert max(means) - min(means) > 0.3
    assert all(0 < one < 1 for found in shares.values() for one in found)


def test_counters_are_about_those_of_the_project() -> None:
    own = counters(GUEST)
    assert set(own) == set(COUNTERS)
    alike, other = counters(replace(GUEST, consumer_uuid="b")), counters(replace(GUEST, project_id="red"))
    assert all(alike[name] == pytest.approx(own[name], rel=0.11) for name in COUNTERS)
    assert sum(other[name] == pytest.approx(own[name], rel=0.11) for name in COUNTERS) < len(COUNTERS) / 2


def test_every_sample_says_that_it_is_made_up_and_the_nodes_sum_up() -> None:
    guests = [GUEST, replace(GUEST, consumer_uuid="young", age_seconds=1e6)]
    outbox = Outbox(lambda: 0.0, "synthetic")
    SyntheticLook(outbox, lambda: guests).run()
    samples = outbox.take()
    assert {item.source for item in samples} == {"synthetic"}
    assert len(samples) == 2 * (6 + len(COUNTERS))
    values = {(item.consumer_uuid, item.metric, item.node): item.mean for item in samples}
    for guest in (VM, "young"):
        for metric in ("memory_mib", "untouched_mib"):
            parts = values[guest, metric, 0] + values[guest, metric, 1]
            assert parts == pytest.approx(values[guest, metric, None])
    assert values["young", "untouched_mib", 1] == 1024, "pool memory is touched last"
    assert values["young", "untouched_mib", 0] == pytest.approx(values["young", "untouched_mib", None] - 1024)


def test_a_host_s_load_is_its_guests_and_made_up() -> None:
    outbox, own = Outbox(lambda: 0.0, Source.SYNTHETIC), HostOutbox(lambda: 0.0, Source.SYNTHETIC)
    SyntheticLoadLook(outbox, own, lambda: [GUEST]).run()
    [sample] = outbox.take()
    assert (sample.metric, sample.source) == ("used_cpus", "synthetic")
    found = {item.metric: item for item in own.take()}
    assert {item.source for item in found.values()} == {"synthetic"}
    assert found["load_percent"].value == pytest.approx(2.0 + 100.0 * sample.mean / 16)
    assert found["free_mib"].value == 128 * 1024 - 4 * 1024 - 3072


def test_a_guest_s_load_has_a_day() -> None:
    noon, night = (used_cpus(replace(GUEST, age_seconds=hours * 3600.0)) for hours in (6, 18))
    assert noon == pytest.approx(3 * night)
