"""Schemas of audits."""

from pondstack_api.schemas import base

CREATE = base.closed(
    {"repair": base.described(base.FLAG, "true or false (the default); true: mend what can be explained as well")},
    optional=("repair",),
)
FINDING = base.closed(
    {
        "code": base.described(base.TEXT, "what kind of finding, a stable word"),
        "severity": base.described(
            base.TEXT, "how bad it is: info (no fault: something under way or as configured), warning or critical"
        ),
        "subject": base.described(base.TEXT, "what it is about"),
        "detail": base.described(base.TEXT, "what does not agree"),
        "action": base.described(base.TEXT, "what was done about it, or what has to be done"),
    }
)
AUDIT = base.closed(
    {
        "clean": base.described(base.FLAG, "whether ledger, Placement, agents and devices agree: no finding but info"),
        "repair": base.described(base.FLAG, "whether repairs were asked for"),
        "findings": {"type": "array", "items": FINDING, "description": "what does not agree"},
        "totals": {"type": "object", "description": "how much was looked at, by kind"},
    }
)
