"""What is set for projects: set, shown, listed, unset, refused."""

from typing import Any

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MEMBER, MemoryTest

UNSET = {"default_policy": None, "max_pool_percent": None}


class ProjectsTest(MemoryTest):
    """GET /projects, /projects/{project_id}; PUT /projects/{project_id}, of projects that nobody has servers in."""

    min_microversion = "1.14"
    credentials = [*MemoryTest.credentials, MEMBER]

    def setUp(self) -> None:
        """Take a project of its own."""
        super().setUp()
        self.client = self.memory("Projects")
        self.project = self.unknown_uuid().replace("-", "")

    def set(self, **changes: Any) -> dict[str, Any]:
        """Set something, and have it unset at the end; returns what is set then."""
        self.addCleanup(self.client.set_project, self.project, **UNSET)
        answer = self.client.set_project(self.project, **changes)
        return {name: answer[name] for name in UNSET}

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("3d5b8f10-6a0e-4f63-9a0b-2b7c9d4e1a46")
    def test_what_is_set_is_shown_until_it_is_unset(self) -> None:
        """Each setting by itself; a project with nothing set is shown, and not listed."""
        self.assertEqual(UNSET, self.set(**UNSET))
        self.assertEqual(UNSET | {"default_policy": "auto"}, self.set(default_policy="auto"))
        self.assertEqual({"default_policy": "auto", "max_pool_percent": 0}, self.set(max_pool_percent=0))
        shown = self.client.show_project(self.project)
        self.assertEqual(("auto", 0), (shown["default_policy"], shown["max_pool_percent"]))
        self.assertIn(shown, self.client.list_projects()["projects"])
        self.client.set_project(self.project, **UNSET)
        self.assertIsNone(self.client.show_project(self.project)["updated_at"])
        listed = [item["project_id"] for item in self.client.list_projects()["projects"]]
        self.assertNotIn(self.project, listed)

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("a9d2c7e4-1b5f-4d0c-8c3e-7f6a5b4d1a47")
    def test_what_is_malformed_or_not_allowed_is_refused(self) -> None:
        """400 for a wrong value, an unknown key, nothing at all; 403 for a member; 404 for an unknown marker."""
        for wrong in (
            {},
            {"colour": "blue"},
            {"default_policy": "fixed"},
            {"max_pool_percent": 101},
            {"max_pool_percent": "40"},
        ):
            self.assertRaises(exceptions.BadRequest, self.client.set_project, self.project, **wrong)
        self.assertRaises(exceptions.NotFound, self.client.list_projects, marker=self.project)
        member = self.memory("Projects", MEMBER)
        self.assertRaises(exceptions.Forbidden, member.set_project, self.project, max_pool_percent=100)
        self.assertIsNone(self.client.show_project(self.project)["updated_at"])
