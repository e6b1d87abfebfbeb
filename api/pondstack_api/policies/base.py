"""The roles that the rules are made of.

What is of the rack (pools, slices, hosts, agents, leader) belongs to the operator: admin, a service, or a reader whose
token is scoped to the system. A project's reader (member and manager imply it) sees its own objects only.
"""

from oslo_policy import policy

ADMIN = "rule:admin_api"
RACK_READER = "rule:rack_reader_api"
ADMIN_OR_SERVICE = "rule:admin_or_service_api"
PROJECT_READER = "rule:rack_or_project_reader_api"

PROJECT_MEMBER = "rule:admin_or_project_member_api"

BOTH_SCOPES = ["system", "project"]

RULES = [
    policy.RuleDefault("admin_api", "role:admin", description="The operator: may change things."),
    policy.RuleDefault(
        "admin_or_service_api",
        "role:admin or role:service",
        description="The operator, or a service (role service).",
    ),
    policy.RuleDefault(
        "rack_reader_api",
        "rule:admin_or_service_api or (role:reader and system_scope:all)",
        description="Who may see the whole rack: all hosts, all projects.",
    ),
    policy.RuleDefault(
        "rack_or_project_reader_api",
        "rule:rack_reader_api or (role:reader and project_id:%(project_id)s)",
        description="Who may see a project's own objects.",
    ),
    policy.RuleDefault(
        "admin_or_project_member_api",
        "rule:admin_api or (role:member and project_id:%(project_id)s)",
        description="Who may tell of a project's own objects.",
    ),
]


def rule(name: str, check: str, description: str, method: str, path: str) -> policy.DocumentedRuleDefault:
    """Return the rule of one route."""
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check,
        description=description,
        operations=[{"method": method, "path": path}],
        scope_types=BOTH_SCOPES,
    )
