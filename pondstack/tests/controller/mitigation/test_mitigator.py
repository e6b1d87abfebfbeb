"""What the mitigator does where things are refused; whole histories are in tests.sim.mitigation."""

from typing import Any
from unittest import mock

import futurist
import oslo_messaging
import pytest

from pondstack.clients.nova import ServerState
from pondstack.controller.mitigation.mitigator import Mitigator
from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, InUse, NoLocalRoom, NotFound, Unavailable
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from pondstack.domain.mitigation_step import Act, Limits, Step
from pondstack.ledger.records import AllocationRecord
from pondstack.rpc.wire import Mitigation as WireMitigation
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

S = MitigationState
VM = "0635cccd-1e78-5473-b66a-bacffc433357"
SPLIT = {"h1": {"MEMORY_MB": 2048}, "pool": {"CUSTOM_POND_MEMORY_MB": 2048}}


class World:
    """One server, whose claim anybody may change."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ledger = MemoryLedger(self.store, take_over(self.store))
        self.claim: dict[str, dict[str, int]] = SPLIT
        self.room = True
        self.state: ServerState | None = ServerState("h1", "", True)
        self.agents = mock.Mock()
        self.agents.get_mitigation.return_value = None
        self.nova = mock.Mock()
        self.nova.server.side_effect = lambda _uuid: self.state
        self.records = [record()]
        self.corrected: list[str] = []
        self.mitigator = Mitigator(
            self.ledger,
            self.nova,
            self,  # type: ignore[arg-type]
            self.agents,
            lambda _consumer: self.records,
            limits=lambda: Limits(retries=1),
            most=lambda: (1, 2),
            executor=futurist.SynchronousExecutor(),
            corrected=self.corrected.append,
        )

    def held_by(self, _consumer: str) -> dict[str, dict[str, int]]:
        """As Placement's client."""
        return self.claim

    def resize_claim(self, _consumer: str, change: Any, *, still: Any, force: bool = False) -> bool:
        """As Placement's client."""
        del force
        wanted = change(self.claim)
        still()
        if self.room:
            self.claim = wanted
        return self.room

    def begin(self, **how: Any) -> Mitigation:
        """Begin."""
        return self.mitigator.begin(VM, trigger=MitigationTrigger.OPERATOR, **how)

    def rounds(self) -> None:
        """Go round until nothing changes any more."""
        for _ in range(8):
            self.mitigator.run()

    def newest(self) -> Mitigation:
        """Return the newest."""
        found = self.store.read(lambda tx: self.ledger._store.mitigations.latest(tx, VM))
        assert found is not None
        return found


def record(**changes: Any) -> AllocationRecord:
    about: dict[str, Any] = {"uuid": "a1", "consumer_uuid": VM, "host": "h1", "pool_uuid": "p", "pool_name": "p"}
    sizes = {"extents": ({"start": 0, "count": 2},), "slice_mib": 1024, "pool_mib": 2048, "guest_mib": 4096}
    rest = {"project_id": "blue", "user_id": "", "state": "online", "generation": 1, "created_at": 0.0}
    return AllocationRecord(**(about | sizes | rest | changes))


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_recorded_and_a_repetition_begins_nothing(world: World) -> None:
    begun = world.begin(operation_id="op", evidence={"zNUMA": 1})
    assert (begun.state, begun.pool_mib, begun.project_id, begun.evidence) == (S.CLAIMING, 2048, "blue", {"zNUMA": 1})
    assert world.begin(operation_id="op", evidence={"zNUMA": 1}).uuid == begun.uuid
    with pytest.raises(Conflict, match="wait for its end"):
        world.begin()
    with pytest.raises(BadRequest, match="another server"):
        world.mitigator.begin("other", trigger=MitigationTrigger.OPERATOR, operation_id="op")


def test_a_repetition_that_came_before_the_first_one_had_begun_it_is_no_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client waits a second for an answer, and Nova may take longer."""
    begun = world.begin(operation_id="op")
    real, looks = world.ledger.mitigations.begun, iter([None])
    monkeypatch.setattr(world.ledger.mitigations, "begun", lambda operation: next(looks, real(operation)))
    assert world.begin(operation_id="op").uuid == begun.uuid
    with pytest.raises(Conflict, match="already"):
        world.begin(operation_id="another")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"records": []}, NotFound),
        ({"state": None}, NotFound),
        ({"state": ServerState("h1", "powering-off", True)}, Conflict),
        ({"state": ServerState("h2", "", True)}, Conflict),
        ({"records": [record(), record(host="h2")]}, Conflict),
    ],
)
def test_what_cannot_be_mitigated_is_refused(world: World, change: dict[str, Any], error: type[Exception]) -> None:
    for name, value in change.items():
        setattr(world, name, value)
    with pytest.raises(error):
        world.begin()
    assert not world.ledger.mitigations.unended()


def test_without_room_by_placement(world: World) -> None:
    world.room = False
    world.begin(method=MitigationMethod.COPY)
    world.rounds()
    assert world.newest().state is S.FAILED
    assert "no local memory" in world.newest().reason
    world.begin()
    world.rounds()
    assert (world.newest().state, world.newest().method) == (S.MOVING, MitigationMethod.MIGRATE)
    assert world.corrected == [VM]
    assert world.claim == SPLIT


@pytest.mark.parametrize("error", [NoLocalRoom, BadRequest, HostUnusable])
def test_a_host_that_cannot_copy(world: World, error: type[Exception]) -> None:
    world.agents.mitigate.side_effect = error("no")
    world.begin(method=MitigationMethod.COPY)
    world.rounds()
    assert world.newest().state is S.FAILED
    assert world.claim == SPLIT
    world.begin()
    world.rounds()
    assert (world.newest().state, world.newest().method) == (S.MOVING, MitigationMethod.MIGRATE)
    assert world.claim == SPLIT


def test_an_agent_that_does_not_answer_is_waited_for(world: World) -> None:
    world.agents.mitigate.side_effect = oslo_messaging.MessagingTimeout
    world.begin()
    world.rounds()
    assert world.newest().state is S.MOVING
    assert "does not answer" in world.newest().reason
    world.agents.mitigate.side_effect = None
    world.rounds()
    assert len({call.kwargs["operation_id"] for call in world.agents.mitigate.call_args_list}) == 1


def test_a_claim_that_is_not_what_was_seen_is_not_changed(world: World) -> None:
    moved = {"h2": {"MEMORY_MB": 2048}, "pool": {"CUSTOM_POND_MEMORY_MB": 2048}}
    world.begin()

    def look(_uuid: str) -> ServerState | None:
        world.claim = moved
        return world.state

    world.nova.server.side_effect = look
    world.mitigator.run()
    assert world.claim == moved
    assert world.newest().state is S.CLAIMING
    assert "changed meanwhile" in world.newest().reason


def test_a_guest_that_uses_the_pool_again_is_copied_again(world: World) -> None:
    def copied(_host: str, *, operation_id: str, **_about: Any) -> None:
        world.agents.get_mitigation.return_value = WireMitigation(VM, "a1", operation_id, "mitigated")

    world.agents.mitigate.side_effect = copied
    world.agents.release_mitigated.side_effect = InUse("it was resumed")
    world.begin()
    world.rounds()
    assert world.agents.mitigate.call_count > 1
    with pytest.raises(Conflict, match="only go on"):
        world.mitigator.abort(VM)
    world.agents.release_mitigated.side_effect = lambda *_args, **_named: world.records.clear()
    world.rounds()
    assert world.newest().state is S.DONE
    assert world.claim == {"h1": {"MEMORY_MB": 4096}}
    names = [name for name, _, _ in world.agents.method_calls]
    assert names.index("mitigate") < names.index("rewrite_domain") < names.index("release_mitigated")


def take(world: World, *states: MitigationState) -> None:
    """Take the newest further as the next leader does, whose term has begun meanwhile."""
    for state in states:
        world.ledger.mitigations.advance(world.newest(), Step(Act.WAIT, state))


def test_the_next_leader_ends_it_between_two_steps(world: World) -> None:
    world.mitigator._changed = lambda item: item.state is S.MOVING and take(world, S.UNDOING, S.FAILED)
    world.begin()
    world.mitigator.run()
    assert world.newest().state is S.FAILED
    world.agents.mitigate.assert_not_called()


def test_the_next_leader_ends_it_while_this_one_waits(world: World) -> None:
    def no_answer(_uuid: str) -> ServerState | None:
        take(world, S.FAILED)
        raise Unavailable("Nova does not answer")

    world.begin()
    world.nova.server.side_effect = no_answer
    world.mitigator.run()
    assert (world.newest().state, world.newest().reason) == (S.FAILED, "")


def test_one_at_a_time_on_a_host(world: World) -> None:
    world.begin()
    world.agents.get_mitigation.return_value = None
    world.rounds()
    other = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
    world.records = [record(consumer_uuid=other)]
    world.mitigator.begin(other, trigger=MitigationTrigger.OPERATOR)
    world.rounds()
    waiting = next(item for item in world.ledger.mitigations.unended() if item.consumer_uuid == other)
    assert waiting.state is S.CLAIMING
    assert "max_per_host" in waiting.reason
