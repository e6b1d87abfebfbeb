"""What an operator does of Placement where a nova-compute died before its live migration had begun."""

from typing import Any
from unittest import mock

import pytest

from tests.robustness.left_by_nova import LeftByNova

pytestmark = pytest.mark.unit

HERE, THERE, POOL = ({"MEMORY_MB": 3072}, {"MEMORY_MB": 3072}, {"CUSTOM_POND_MEMORY_MB": 1024})


@pytest.fixture
def left() -> LeftByNova:
    """Return an operator of two hosts, who finds no claim of a migration."""
    made = LeftByNova.__new__(LeftByNova)
    made.cloud = mock.Mock()
    made.providers, made.shared = {"host1": "uuid1", "host2": "uuid2"}, {"pool": "uuid-pool"}
    made.cloud.servers.return_value = []
    made.cloud.claims.return_value = {}
    return made


def claim(
    left: LeftByNova, claims: dict[str, dict[str, int]], migration: dict[str, dict[str, int]] | None = None
) -> None:
    """Have a server claim amounts of providers, and a migration that Nova gave up."""

    def get(url: str, **_kw: Any) -> mock.Mock:
        amounts = claims if url == "/allocations/server" else migration or {}
        held = {"allocations": {uuid: {"resources": each} for uuid, each in amounts.items()}}
        owner = {"project_id": "p", "user_id": "u", "consumer_generation": 4} if amounts else {}
        return mock.Mock(json=lambda: held | owner)

    left.cloud.placement.get.side_effect = get
    left.cloud.claims.side_effect = lambda uuid: {"migration": {}} if uuid in (migration or {}) else {}


def put_right(left: LeftByNova, task: str = "", domains: dict[str, str] | None = None) -> list[str]:
    """Put a server right that Nova has on host1."""
    return left.put_right("server", "host1", task, domains or {"host1": "running"})


def test_what_is_claimed_of_the_destination_is_claimed_of_its_own_host(left: LeftByNova) -> None:
    claim(left, {"uuid2": THERE, "uuid-pool": POOL})
    assert put_right(left) == ["it claimed nothing of host1, where it runs"]
    [written] = left.cloud.placement.put.call_args_list
    assert written.kwargs["json"]["allocations"] == {"uuid1": {"resources": HERE}, "uuid-pool": {"resources": POOL}}
    assert written.kwargs["json"]["consumer_generation"] == 4


def test_what_a_migration_claims_that_nova_gave_up_is_the_servers(left: LeftByNova) -> None:
    """A second migration failed, and Nova took back what the server claimed of the destination of both."""
    claim(left, {}, {"uuid1": HERE, "uuid-pool": POOL})
    with mock.patch.object(LeftByNova, "delete_orphans", return_value=[]):
        assert put_right(left) == ["it claimed nothing of host1, where it runs"]
    body = left.cloud.placement.put.call_args.kwargs["json"]
    assert body["allocations"] == {"uuid1": {"resources": HERE}, "uuid-pool": {"resources": POOL}}
    assert (body["project_id"], body["consumer_generation"]) == ("p", None)


def test_a_claim_that_nobody_has_is_not_made_up(left: LeftByNova) -> None:
    claim(left, {"uuid-pool": POOL})
    assert put_right(left) == []
    left.cloud.placement.put.assert_not_called()


def test_a_claim_stays_where_it_is_right(left: LeftByNova) -> None:
    claim(left, {"uuid1": HERE, "uuid-pool": POOL})
    assert put_right(left) == []
    left.cloud.placement.put.assert_not_called()


@pytest.mark.parametrize(
    ("task", "domains"), [("migrating", None), ("", {"host1": "running", "host2": "paused"})], ids=["task", "domains"]
)
def test_nothing_is_done_while_it_may_still_move(left: LeftByNova, task: str, domains: dict[str, str] | None) -> None:
    """`nova-manage placement audit --delete` would delete what it claims of the host to which it comes."""
    claim(left, {"uuid2": THERE, "uuid-pool": POOL})
    assert put_right(left, task, domains) == []
    left.cloud.placement.put.assert_not_called()
    left.cloud.claims.assert_not_called()
