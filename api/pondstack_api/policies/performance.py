"""Who may tell how well a server performs: its project's members."""

from pondstack_api.policies import base

RECORD = "memory:performance:record"

RULES = [
    base.rule(
        RECORD, base.PROJECT_MEMBER, "Tell a figure of a server's performance.", "PUT", "/performance/{consumer}"
    ),
]
