"""What tests of the API and scenarios share: clients of the personas, the microversion, waits."""

from collections.abc import Callable
from typing import Any, ClassVar

from tempest import config, test
from tempest.lib import exceptions
from tempest.lib.common import api_version_utils
from tempest.lib.common.utils import data_utils

from pondstack_tempest import waiters

CONF = config.CONF

ADMIN = "admin"
MEMBER = "project_member"
READER = "project_reader"
OTHER = "project_alt_member"
SYSTEM_READER = "system_reader"


class MemoryTest(api_version_utils.BaseMicroversionTest, test.BaseTestCase):
    """A test with the API. `min_microversion`: the one that it was written for; `credentials`: its personas."""

    credentials: ClassVar[list[Any]] = [ADMIN]
    min_microversion = "1.0"
    max_microversion = "latest"

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where the service, or the microversion, is not there."""
        super().skip_checks()
        if not CONF.service_available.pondstack:
            raise cls.skipException("[service_available] pondstack is false")
        own = CONF.pondstack
        api_version_utils.check_skip_with_microversion(
            cls.min_microversion, cls.max_microversion, own.min_microversion, own.max_microversion
        )

    @classmethod
    def setup_credentials(cls) -> None:
        """Make the personas, without networks."""
        cls.set_network_resources()
        super().setup_credentials()

    @classmethod
    def resource_setup(cls) -> None:
        """Choose the microversion."""
        super().resource_setup()
        cls.microversion = api_version_utils.select_request_microversion(
            cls.min_microversion, CONF.pondstack.min_microversion
        )

    @classmethod
    def memory(cls, noun: str, persona: str = ADMIN) -> Any:
        """Return a client, such as memory("Pools"), that speaks the test's microversion."""
        client = getattr(getattr(cls, f"os_{persona}").pondstack, f"{noun}Client")()
        client.microversion = cls.microversion
        return client

    def until(self, condition: Callable[[], Any], otherwise: str) -> None:
        """Wait for a condition within [pondstack] build_timeout."""
        waiters.until(condition, CONF.pondstack.build_timeout, CONF.pondstack.build_interval, lambda: otherwise)

    def assert_status(self, status: int, call: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Assert that a call is refused with a status; return the first error of its document."""
        with self.assertRaises(exceptions.RestClientException) as caught:
            call(*args, **kwargs)
        self.assertEqual(status, caught.exception.resp.status, str(caught.exception))
        # RestClient takes the only key of a document, `errors`, away.
        errors: list[dict[str, Any]] = getattr(caught.exception, "resp_body", None) or [{}]
        return errors[0]

    def assert_pages(self, noun: str, method: str, collection: str, key: str, *args: Any, limit: int = 1) -> None:
        """Assert that small pages give each object once, in order, by marker and with a next link until the last."""
        fetch = getattr(self.memory(noun), method)
        whole = [one[key] for one in fetch(*args, limit=1000)[collection]]
        seen: list[Any] = []
        while True:
            query = {"limit": limit, **({"marker": seen[-1]} if seen else {})}
            page = fetch(*args, **query)
            self.assertLessEqual(len(page[collection]), limit)
            seen += [one[key] for one in page[collection]]
            links = [link["href"] for link in page.get("links", []) if link["rel"] == "next"]
            if not links:
                break
            self.assertIn(f"marker={seen[-1]}", links[0])
            self.assertLessEqual(len(seen), len(whole))
        self.assertEqual(whole, seen)

    def the_pool(self) -> dict[str, Any]:
        """Return a pool that is up; skip where there is none."""
        for pool in self.memory("Pools").list_pools()["pools"]:
            if pool["state"] == "up":
                return dict(pool)
        raise self.skipException("no pool is up")

    def an_expendable_host(self) -> str:
        """Return the name of a host that tests may break; skip where there is none. For serial tests."""
        for name in CONF.pondstack.expendable_hosts:
            return str(name)
        raise self.skipException("[pondstack] expendable_hosts is empty: tests may break no host")

    def a_host(self) -> dict[str, Any]:
        """Return a host that is up and reaches a pool; skip where there is none."""
        for host in self.memory("Hosts").list_hosts()["hosts"]:
            if host["up"] and host["pools"]:
                return dict(host)
        raise self.skipException("no host is up and reaches a pool")

    @staticmethod
    def unknown_uuid() -> str:
        """Return a UUID that nothing has."""
        return str(data_utils.rand_uuid())
