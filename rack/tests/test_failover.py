"""What the rack's fail-over measures, and what it does not let pass."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter, token_endpoint
from keystoneauth1 import session as keystone_session

from pondstack.domain.errors import NotLeader
from pondstack_rack.demo import failover
from pondstack_rack.demo.guest_heartbeat import Beat
from pondstack_rack.demo.write_probe import Changes
from pondstack_rack.wait import wait_until
from tests.fixtures.api import URL, ApiFixture

PATIENCE_SECONDS = 30.0


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiFixture]:
    fixture = ApiFixture(tmp_path)
    yield fixture
    fixture.close()


def memory(api: ApiFixture) -> adapter.Adapter:
    session = keystone_session.Session(token_endpoint.Token(URL, "admin:ops"), session=api.session())
    return adapter.Adapter(session, service_type="memory", default_microversion="1.1")


def test_changes_write_to_the_ledger_and_change_nothing(api: ApiFixture) -> None:
    api.ledger.hosts.set("host-1", False, "new memory", None)
    before = api.reader.host("host-1")
    written = []
    real = api.ledger.hosts.set
    api.controller._ledger.hosts.set = lambda *words: written.append(real(*words)) or written[-1]  # type: ignore[method-assign]
    with Changes(memory(api), "host-1") as changes:
        assert wait_until(lambda: len(changes.acknowledged) >= 3, PATIENCE_SECONDS)
    after = api.reader.host("host-1")
    assert (after.enabled, after.disabled_reason, after.generation) == (False, "new memory", before.generation)
    assert len(written) >= len(changes.acknowledged)


def test_changes_go_on_after_a_time_without_a_leader(api: ApiFixture) -> None:
    ticks = itertools.chain([0.0, 1.0, 1.5], itertools.count(9.5, 0.25))
    with Changes(memory(api), "host-1", clock=lambda: next(ticks)) as changes:
        assert wait_until(lambda: len(changes.acknowledged) >= 3, PATIENCE_SECONDS)
        api.controller.error = NotLeader("no controller leads")
        assert wait_until(lambda: len(changes.refused) >= 2, PATIENCE_SECONDS)
        api.controller.error = None
        so_far = len(changes.acknowledged)
        assert wait_until(lambda: len(changes.acknowledged) > so_far, PATIENCE_SECONDS)
    assert set(changes.refused) == {"no controller leads"}
    assert changes.longest_wait_seconds == 8.0
    assert changes.since(9.0) == len(changes.acknowledged) - 3


def test_changes_that_end_early_say_why(api: ApiFixture) -> None:
    changes = Changes(memory(api), "host-9")
    with pytest.raises(Exception, match="404"), changes:
        assert wait_until(lambda: changes.failure is not None, PATIENCE_SECONDS)


BEAT = Beat("0635cccd", pid=7, count=12, errors=0, pool_node=1)
WELL = failover.Outcome(
    before="controller1",
    after="controller2",
    epoch_before=3,
    epoch_after=4,
    wait_seconds=1.62,
    changes=80,
    refused=0,
    roles={"controller1": "standby", "controller2": "leader"},
    findings=(),
    guest_before=BEAT,
    guest_after=dataclasses.replace(BEAT, count=15),
)


def test_a_fail_over_that_nobody_noticed_is_well() -> None:
    assert failover.check(WELL) == []
    assert failover.summary([WELL]) == (
        "1.62 s without a change: controller1 (epoch 3) -> controller2 (epoch 4); the audit is clean; "
        "the guest noticed nothing"
    )
    assert failover.check(dataclasses.replace(WELL, guest_before=None, guest_after=None)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"after": "controller1"}, "controller1 leads again"),
        ({"epoch_after": 3}, "epoch 3 does not follow 3"),
        ({"roles": {"controller1": "down", "controller2": "leader"}}, "not a leader and a stand-by"),
        ({"findings": ("agent_lost of pool0 slice 3: gone",)}, "the audit finds agent_lost of pool0 slice 3"),
        ({"guest_after": dataclasses.replace(BEAT, pid=8, count=15)}, "another process: 8, was 7"),
        ({"guest_after": BEAT}, "beats no more, the last beat was 12"),
        ({"guest_after": dataclasses.replace(BEAT, count=15, errors=2)}, "read 2 times something else from node1"),
    ],
)
def test_what_is_not_well_is_said(change: dict[str, Any], said: str) -> None:
    (wrong,) = failover.check(dataclasses.replace(WELL, **change))
    assert said in wrong


def _faked(monkeypatch: pytest.MonkeyPatch, outcomes: list[failover.Outcome]) -> None:
    following = iter(outcomes)
    monkeypatch.setattr(failover, "run", lambda _rack, **_options: next(following))


def test_many_fail_overs_end_in_their_median_and_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = dataclasses.replace(
        WELL,
        wait_seconds=4.0,
        epoch_before=4,
        epoch_after=5,
        guest_before=WELL.guest_after,
        guest_after=dataclasses.replace(BEAT, count=19),
    )
    _faked(monkeypatch, [WELL, slow])
    outcomes, wrong = failover.repeat(None, 2, kill=True, say=lambda _text: None)  # type: ignore[arg-type]
    assert wrong == []
    assert failover.summary(outcomes) == (
        "2.81 s without a change at the median, 4.00 s at most, of 2 fail-overs (epoch 3 -> 5); the audit is clean "
        "after each; one guest, pid 7, ran through all of them: beat 12 to 19, 0 errors"
    )


def test_many_fail_overs_stop_at_the_first_bad_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _faked(monkeypatch, [WELL, dataclasses.replace(WELL, epoch_after=3)])
    outcomes, (wrong,) = failover.repeat(None, 3, kill=True, say=lambda _text: None)  # type: ignore[arg-type]
    assert len(outcomes) == 2
    assert "epoch 3 does not follow 3" in wrong


def test_a_guest_that_was_replaced_between_two_fail_overs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(BEAT, pid=8, count=20)
    second = dataclasses.replace(WELL, guest_before=other, guest_after=dataclasses.replace(other, count=22))
    _faked(monkeypatch, [WELL, second])
    _, (wrong,) = failover.repeat(None, 2, kill=True, say=lambda _text: None)  # type: ignore[arg-type]
    assert "another process: 8, was 7" in wrong
