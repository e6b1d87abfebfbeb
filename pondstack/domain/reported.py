"""What hosts report of lent memory and of tiering, as shapes: the leader keeps it, and rules and readers take it apart.

A host that says something else has no report: what one of them makes up must not end an audit of all. Pure.
"""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.lending import LenderKind
from pondstack.domain.shape import Fields, Flag, Index, Items, Nullable, OneOf, Row, Shape, Table, Text, Whole

MOST_BUFFERS = 2**20
"""Of one lender: 64 TiB in buffers of 64 MiB."""
_MIB = Whole(-(2**40), 2**40)
_ID, _INDEX = Text(255), Whole(0, MOST_BUFFERS - 1)
_REASON = Text(2**20)


def _few(told: Mapping[str, Any]) -> None:
    """Check that the runs of a lender's buffers are as many as a host can have: rules look at each of them."""
    if sum(run[1] for run in told["buffers"]) > MOST_BUFFERS:
        raise ValueError(f"buffers are more than {MOST_BUFFERS}")


_OPERATION = Fields(
    {
        "operation_id": _ID,
        "verb": OneOf(("lend", "reclaim")),
        "state": OneOf(("pending", "telling", "done")),
        "mib": _MIB,
        "done_mib": _MIB,
        "reason": _REASON,
    },
    others=True,
)
LENDING: Shape = Fields(
    {
        "incarnation": _ID,
        "kind": OneOf(tuple(LenderKind)),
        "buffer_mib": Whole(0, 2**31 - 1),
        "buffers": Items(Row((_INDEX, Whole(1, MOST_BUFFERS), _ID, Whole())), most=MOST_BUFFERS),
    },
    {
        "failed": Table(Index(), _REASON),
        "answers": Flag(),
        "lendable_mib": Nullable(_MIB),
        "operations": Items(_OPERATION, most=1000),
    },
    others=True,
    rule=_few,
)
"""pondstack.rpc.wire.Report.lending."""

LENT_BUFFERS: Shape = Items(Fields({"index": _INDEX, "offset_mib": Whole(0, 2**40)}, others=True), most=MOST_BUFFERS)
"""What a host delegates: all its buffers."""
_BY_ALLOCATION = Table(_ID, Items(_INDEX, most=MOST_BUFFERS))
_GIVEN_BACK = Fields({"allocation_uuid": _ID, "indexes": Items(_INDEX, most=MOST_BUFFERS)}, others=True)
_SHARE = Fields(
    {"consumer_uuid": _ID, "project_id": Text(255), "guaranteed": Flag(), "mib": Whole(0, 2**40)},
    {"disk_mib": Nullable(Whole(0, 2**40))},
    others=True,
)
_STRANDED = Fields({"consumer_uuid": _ID, "seconds": Whole(), "lost": Flag()}, others=True)
BORROWED: Shape = Fields(
    {},
    {
        "lenders": Items(
            Fields(
                {
                    "lender": _ID,
                    "incarnation": _ID,
                    "allocations": _BY_ALLOCATION,
                    "leaving": _BY_ALLOCATION,
                    "released": Items(_GIVEN_BACK),
                },
                others=True,
            ),
            most=100_000,
        ),
        "links": Items(Row((_ID, _ID)), most=100_000),
        "swap_disks": Table(_ID, Whole(1, 2**40), most=100_000),
        "shares": Items(_SHARE, most=100_000),
        "stranded": Items(_STRANDED, most=100_000),
    },
    others=True,
)
"""pondstack.rpc.wire.Report.borrowed."""

TIERING: Shape = Fields(
    {},
    {
        "settings": Table(_ID, Text()),
        "tiers": Table(_ID, Items(Whole(0, 1023), most=1024)),
        "trouble": Items(_REASON, most=1000),
    },
    others=True,
)
"""pondstack.rpc.wire.Report.tiering."""
