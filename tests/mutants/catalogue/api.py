"""Faults planted in the API."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "all_projects_listed",
        "api/pondstack_api/handlers/allocation.py",
        "        project = context.project_id\n",
        '        project = query.get("project_id")\n',
        ("api/tests/test_gabbi.py",),
        "a project lists the allocations of all projects",
    ),
    Mutant(
        "other_projects_shown",
        "api/pondstack_api/handlers/allocation.py",
        'if not request.context.can(policy.SHOW, {"project_id": allocation.project_id}):',
        'if not request.context.can(policy.SHOW, {"project_id": request.context.project_id}):',
        ("api/tests/test_gabbi.py",),
        "a project sees another project's allocation",
    ),
    Mutant(
        "service_mends",
        "api/pondstack_api/handlers/audit.py",
        "    if repair:\n        request.context.require(policy.REPAIR)\n",
        "",
        ("api/tests/test_gabbi.py",),
        "a service has an audit change things",
    ),
    Mutant(
        "forged_identity",
        "api/pondstack_api/middleware/auth.py",
        "req.headers.pop(name, None)\n            return self._application\n        return self._checked",
        "req.headers.get(name)\n            return self._application\n        return self._checked",
        ("api/tests/test_auth.py",),
        "identity headers of the sender's own are believed on public paths",
    ),
    Mutant(
        "any_reader_sees_the_rack",
        "api/pondstack_api/policies/base.py",
        '"rule:admin_or_service_api or (role:reader and system_scope:all)"',
        '"rule:admin_or_service_api or role:reader"',
        ("api/tests/test_personas.py",),
        "any project's reader sees the whole rack",
    ),
    Mutant(
        "enabled_on_an_old_view",
        "api/pondstack_api/handlers/host.py",
        'reason=reason, generation=wanted["generation"]',
        "reason=reason, generation=None",
        ("api/tests/test_gabbi.py",),
        "a host is enabled on an outdated view",
    ),
)
