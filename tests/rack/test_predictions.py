"""Predictions place VMs of the rack, and the monitor mends a misprediction, which teaches; traces are synthetic."""

import pytest
from keystoneauth1.adapter import Adapter

from pondstack_rack.demo import predictions
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]


def test_a_project_with_history_gets_a_better_split_and_a_misprediction_teaches(rack: Rack) -> None:
    outcome = predictions.run(rack.layout, print)
    assert predictions.check(outcome) == []
    assert outcome.known.source == "untouched"
    assert f"model {outcome.model}: " in outcome.known.reason
    assert not rack.layout.traces.exists()
    memory = Adapter(keystone.session(rack.layout), "memory", region_name="RegionOne", default_microversion="1.13")
    model = memory.get(f"/models/{outcome.model}").json()
    assert model["state"] != "running", "the rack's other tests would be decided by it"
    assert model["synthetic_labels"] > 0
    sample = memory.get(f"/telemetry/{outcome.known.server}?metric=untouched_mib", microversion="1.12").json()[
        "samples"
    ][0]
    assert sample["source"] == "synthetic"
