"""Who leaves an overloaded host first."""

import pytest

from pondstack.consolidation.decision.demand import demand_of
from pondstack.consolidation.decision.selection import ALGORITHMS
from pondstack.consolidation.decision.settings import Settings

from .builders import server

SERVERS = [
    server("small-idle", "a", cpus=0.1, mib=512, remaining_seconds=100.0),
    server("small-busy", "a", cpus=1.0, mib=512, remaining_seconds=9000.0),
    server("large", "a", cpus=0.05, mib=4096, remaining_seconds=None),
]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("least-memory", ["small-busy", "small-idle", "large"]),
        ("least-load", ["large", "small-idle", "small-busy"]),
        ("longest-lifetime", ["large", "small-busy", "small-idle"]),
    ],
)
def test_the_order(name, order):
    demands = [demand_of(item, Settings()) for item in SERVERS]
    assert [item.server.uuid for item in ALGORITHMS[name](demands)] == order


def test_chance_is_the_same_for_the_same_servers():
    demands = [demand_of(item, Settings()) for item in SERVERS]
    assert ALGORITHMS["random"](demands) == ALGORITHMS["random"](demands[::-1])
    assert ALGORITHMS["random"]([]) == []
