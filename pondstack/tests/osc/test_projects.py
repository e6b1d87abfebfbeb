"""openstack memory project."""

import pytest

from tests.fixtures import sample_rack

BLUE, GREEN = sample_rack.BLUE, sample_rack.GREEN


def test_list(json_of, openstack):
    rows = {row["Project"]: (row["Default Policy"], row["Max Pool Percent"]) for row in json_of("memory project list")}
    assert rows == {BLUE: ("auto", 40), GREEN: (None, 0)}
    assert len(json_of("memory project list --limit 1")) == 1
    assert f"| {GREEN} | -              | 0 " in openstack("memory project list")[1]


def test_set_and_unset(json_of):
    def told(words):
        answer = json_of(f"memory project {words}")
        return answer["default_policy"], answer["max_pool_percent"]

    assert told("set mine --default-policy none --max-pool-percent 100") == ("none", 100)
    assert told("set mine --max-pool-percent 0") == ("none", 0)
    assert told("show mine") == ("none", 0)
    assert told("unset mine --default-policy") == (None, 0)
    assert told("unset mine --default-policy --max-pool-percent") == (None, None)
    assert json_of("memory project show mine")["updated_at"] is None


@pytest.mark.parametrize("verb", ["set", "unset"])
def test_nothing_to_change(openstack, verb):
    status, _, err = openstack(f"memory project {verb} {BLUE}")
    assert (status, "say what to change: --default-policy or --max-pool-percent" in err) == (1, True)


def test_a_wrong_share(openstack):
    status, _, err = openstack(f"memory project set {BLUE} --max-pool-percent 101")
    assert (status, "max_pool_percent" in err) == (1, True)


def test_a_project_may_not(openstack):
    for words in ("list", f"show {BLUE}", f"set {BLUE} --max-pool-percent 100", f"unset {BLUE} --max-pool-percent"):
        status, out, err = openstack(f"memory project {words}", token=f"joe:{BLUE}")
        assert (status, "pondstack.forbidden" in err) == (1, True), words
        assert "40" not in out
