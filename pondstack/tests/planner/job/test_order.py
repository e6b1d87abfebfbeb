"""What a job may ask for."""

from dataclasses import fields

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.answers.parts import Grid
from pondstack.planner.job.bounds import BOUNDS
from pondstack.planner.job.order import Order, Source
from pondstack.planner.settings import Settings


def test_each_setting_has_a_bound_that_its_default_keeps() -> None:
    for item in fields(Settings):
        assert BOUNDS[item.name].checked(item.default) == item.default


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"source": "/etc/passwd"}, "use cloud, generated"),
        ({"path": "x"}, "has no path"),
        ({"window_days": 0}, "window_days=0 is wrong; it must be a number from 0.01 to 3650"),
        ({"window_days": float("nan")}, "window_days"),
        ({"days": 3}, "days goes with the source generated"),
        ({"source": "generated", "servers": 100_001}, "whole number from 1 to 100000"),
        ({"source": "generated", "servers": True}, "servers=True"),
        ({"settings": {"speed": 1}}, "no setting speed"),
        ({"settings": {"sockets": 513}}, "from 2 to 512 sockets"),
        ({"settings": {"sockets": 3.5}}, "a whole number"),
        ({"settings": {"emc_price": float("inf")}}, "emc_price"),
        ({"settings": {"seeds": 1}}, "a list of 1 to 20 values"),
        ({"settings": {"seeds": []}}, "a list of 1 to 20 values"),
        ({"settings": {"seeds": [1, 1]}}, "each value may be there once"),
        ({"settings": {"policies": ["best"]}}, "use static, pond, oracle"),
        ({"settings": []}, "must be an object"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, object], told: str) -> None:
    with pytest.raises(BadRequest, match=told.replace(".", r"\.")):
        Order.checked(given)


def test_a_record_makes_the_same_order_again() -> None:
    for given in ({"window_days": 7.5}, {"source": "generated", "servers": 9, "settings": {"pool_sockets": [8, 16]}}):
        order = Order.checked(given)
        assert Order.from_record(order.to_record()) == order


def test_the_command_asks_for_the_same() -> None:
    order = Order.checked({"source": "generated", "days": 2, "settings": {"seeds": [1, 2], "emc_price": 3}})
    assert order.source is Source.GENERATED
    assert order.command() == (
        "openstack memory planner run --source generated --servers 20000 --days 2 --trace-seed 1 "
        "--set seeds=1,2 --set emc_price=3.0"
    )


def test_how_many_parts_it_has() -> None:
    settings = {
        "seeds": [1, 2],
        "policies": ["static"],
        "pool_sockets": [8],
        "pool_shares": [1.0],
        "topologies": ["emc"],
    }
    assert Order.checked({"settings": settings}).parts == 2 * (1 + 1 + 2 * 4)


def test_what_keeps_ponds_policy_from_saving_more_counts() -> None:
    order = Order.checked({"settings": {"seeds": [1, 2], "pool_sockets": [8, 16], "pool_shares": [0.5, 1.0]}})
    grid = Grid(Settings(**order.settings), sockets=64)
    assert order.parts == len(grid.tasks) + len(grid.otherwise) + 2 * (1 + 2 * 4)
