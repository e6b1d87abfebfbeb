"""Waits of Nova's test helpers, with a deadline in place of ten looks: Nova's own tests expect an idle machine."""

import functools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from futurist._thread import ThreadWorker
from nova.tests.functional import integrated_helpers

from pondstack_rack.wait import Deadline
from tests.functional import idle_threads

LOOK_SECONDS = 0.2
"""Between two looks of Nova's helpers for a state; Nova's own half a second is most of a test's time."""
WAIT_SECONDS = 60.0
"""How long they look before a test fails."""


class PatientHelpers(integrated_helpers.ProviderUsageBaseTestCase):
    """Nova's helpers; each that waits does so for WAIT_SECONDS, and ends at once where its server is in ERROR."""

    def setUp(self) -> None:
        """Make Nova's pauses short, and its waits long."""
        pause = SimpleNamespace(sleep=lambda _seconds: time.sleep(LOOK_SECONDS))
        # Before Nova starts anything that is to sleep, and until all of it has ended.
        self.useFixture(idle_threads.IdleThreads())
        super().setUp()
        ThreadWorker.MAX_IDLE_FOR = idle_threads.LOOK_SECONDS
        self.stub_out("nova.tests.functional.integrated_helpers.time", pause)
        told = self.notifier.wait_for_versioned_notifications
        self.notifier.wait_for_versioned_notifications = functools.partial(told, timeout=WAIT_SECONDS)

    def _wait_for_server_parameter(self, server: dict[str, Any], expected: dict[str, Any], **kwargs: Any) -> Any:
        look = functools.partial(super()._wait_for_server_parameter, server, expected, **{**kwargs, "max_retries": 10})
        return self._patiently(look, unless=lambda: expected.get("status") != "ERROR" and self._in_error(server))

    def _wait_for_state_change(self, server: dict[str, Any], expected: str, **kwargs: Any) -> Any:
        return self._wait_for_server_parameter(server, {"status": expected}, **kwargs)

    def _wait_for_migration_status(self, *args: Any) -> Any:
        return self._patiently(functools.partial(super()._wait_for_migration_status, *args))

    def _wait_until_deleted(self, server: dict[str, Any]) -> None:
        broken = self._in_error(server)
        look = functools.partial(super()._wait_until_deleted, server)
        self._patiently(look, unless=lambda: not broken and self._in_error(server))

    def _wait_for_instance_action_event(
        self, server: dict[str, Any], action: str, event: str, event_result: str
    ) -> Any:
        look = functools.partial(super()._wait_for_instance_action_event, server, action, event, event_result)
        try:
            return self._patiently(look, unless=lambda: self._ended_badly(server, action, event, event_result) != "")
        except AssertionError as missing:
            raise AssertionError(self._ended_badly(server, action, event, event_result) or str(missing)) from missing

    def _ended_badly(self, server: dict[str, Any], action: str, event: str, event_result: str) -> str:
        """Return the traceback of the newest such action's event that ended in another way, or nothing."""
        newest = next((item for item in self.api.get_instance_actions(server["id"]) if item["action"] == action), None)
        if newest is None:
            return ""
        for found in self.api.get_instance_action_details(server["id"], newest["request_id"])["events"]:
            if found["event"] == event and (found["result"] or event_result).lower() != event_result.lower():
                return f"{event} of {action}: {found['result']}: {found.get('traceback', '')}"
        return ""

    def _wait_for_assert(self, assert_func: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        return self._patiently(functools.partial(super()._wait_for_assert, assert_func, *args, **kwargs))

    def _in_error(self, server: dict[str, Any]) -> bool:
        return any(found["id"] == server["id"] and found["status"] == "ERROR" for found in self.api.get_servers())

    @staticmethod
    def _patiently(look: Callable[[], Any], unless: Callable[[], bool] = lambda: False) -> Any:
        """Repeat a look of Nova's helpers, which is a second long, until it finds what it looks for.

        A KeyError or IndexError of it is something that is not there yet.
        """
        deadline = Deadline(WAIT_SECONDS)
        while True:
            try:
                return look()
            except (AssertionError, LookupError):
                if deadline.over or unless():
                    raise
                deadline.pause(LOOK_SECONDS)
