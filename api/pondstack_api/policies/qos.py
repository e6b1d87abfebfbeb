"""Who may see what the QoS monitor decides: a project whether its servers were corrected, and no more."""

from pondstack_api.policies import base

LIST = "memory:qos:list"
REPORT = "memory:qos:report"
SHOW = "memory:qos:show"
DETAILS = "memory:qos:show:details"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the decisions of the QoS monitor.", "GET", "/qos"),
    base.rule(REPORT, base.RACK_READER, "Compare the control group with the others.", "GET", "/qos/report"),
    base.rule(SHOW, base.PROJECT_READER, "Show whether a server was corrected.", "GET", "/qos/{consumer}"),
    base.rule(
        DETAILS,
        base.RACK_READER,
        "See the decisions about a server, which name hosts and models, and what could be pooled of it.",
        "GET",
        "/qos/{consumer}",
    ),
]
