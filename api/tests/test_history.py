"""What of an instance's history depends on who asks, and on what is known."""

from datetime import UTC, datetime, timedelta

from pondstack.db.store.history import History
from pondstack.domain.history import InstanceFacts
from pondstack.prediction.lifetime import LEAST_AT_RISK
from tests.fixtures import sample_rack

LONER = "7b0a5c1e-3f52-4c1d-9f0e-2d6a8c4b1e90"


def record(api, **more):
    history, now = History(api.database, lambda: 86400), datetime.now(UTC)
    begun = now - timedelta(minutes=5)
    facts = InstanceFacts(LONER, sample_rack.GREEN, "m1", 512, 1, "", "", "", "x", begun, now, **more)
    history.record([facts])


def test_a_tenant_learns_nothing_of_other_projects_lives(api, call):
    record(api)
    tokens = ("admin:ops", f"reader:{sample_rack.GREEN}")
    operator, tenant = (call("GET", f"/history/{LONER}", {"X-Auth-Token": token}).json() for token in tokens)
    assert (operator["remaining_group"], operator["remaining_at_risk"]) == ("cloud", sample_rack.ENDED + 1)
    assert (tenant["remaining_group"], tenant["remaining_at_risk"]) == (None, 0)
    assert str(LEAST_AT_RISK) in tenant["remaining_reason"]
    assert tenant["untouched_mib"] is None


def test_one_that_ended_has_no_life_ahead(api, call):
    record(api, deleted_at=datetime.now(UTC))
    found = call("GET", f"/history/{LONER}").json()
    assert (found["remaining_reason"], found["remaining_median_seconds"]) == ("it was deleted", None)
    assert found["age_seconds"] in range(295, 306)


def test_a_sample_says_where_it_comes_from_since_1_12(call):
    path = f"/telemetry/{sample_rack.CONSUMERS[0]}"
    samples = [call("GET", path, version=version).json()["samples"][0] for version in ("1.11", "1.12")]
    assert ["source" in item for item in samples] == [False, True]
