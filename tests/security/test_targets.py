"""A short run of each seeded fuzzer; `make security MINUTES=5 SEED=1` is a long one of all."""

import pytest

from tests.fixtures import seeds
from tests.security.fuzzers.api_requests import ApiRequests
from tests.security.fuzzers.targets import TARGETS, attacked

STEPS = {
    "api": 112,
    "state-files": 100,
    "page-store-files": 60,
    "wire-values": 600,
    "hostile-host": 150,
    "sockets": 200,
    "native-code": 0,
}
"""Of `api`: each operation in each way. rdma/tests runs native code with sanitizers and the same odd calls."""


def test_each_target_has_a_short_run() -> None:
    assert set(STEPS) == set(TARGETS)
    assert STEPS["api"] >= ApiRequests(1).all_steps


@pytest.mark.parametrize("name", [name for name in STEPS if STEPS[name]])
def test_nothing_wrong_is_accepted_and_nothing_crashes(name: str) -> None:
    seed = seeds.seed(1)
    print(f"make security ONLY={name} STEPS={STEPS[name]} SEED={seed} runs it alone")
    found = attacked(name, seed, STEPS[name])
    assert not found.wrong, "\n".join(found.wrong[:3])
    assert found.counts["refused"] > 0
    assert found.counts["accepted"] > 0
