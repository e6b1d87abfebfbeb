"""The memory service as Watcher calls it: by Watcher's own session, and until what was asked for has ended."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg
from watcher.common import exception

from pondstack.conf import watcher as options
from pondstack.osc.client import ApiError, Document, MemoryClient

MICROVERSION = "1.20"
"""The first that has plans."""
CALL_SECONDS = 60.0
"""How long one call is repeated while nobody can answer it."""
T = TypeVar("T")


class MemoryServiceError(exception.WatcherException):
    """The memory service refused, or what it did ended otherwise than it should; its text is the reason."""


class MemoryService:
    """Calls of one action or strategy. Each raises MemoryServiceError."""

    def __init__(self, session: Any, conf: cfg.ConfigOpts = cfg.CONF) -> None:
        options.register_opts(conf)
        self._group = conf[options.GROUP]
        self._client = MemoryClient(
            session, region_name=self._group.region_name, interface=self._group.interface, version=MICROVERSION
        )

    def hosts(self) -> list[Document]:
        """Return all hosts."""
        return self._list("hosts")

    def borrowed_mib(self) -> dict[str, int]:
        """Return by lender how much of its memory others have, in MiB."""
        return {item["host"]: item["borrowed_mib"] for item in self._list("lenders")}

    def _list(self, name: str) -> list[Document]:
        return self._until(lambda: {name: list(self._client.list(name))}, _always, (name,), CALL_SECONDS)[name]  # type: ignore[no-any-return]

    def get(self, *path: str) -> Document:
        """Return one object."""
        return self._look(_always, CALL_SECONDS, *path)

    def post(self, *path: str, body: Document) -> Document:
        """Have something done; `body` has an operation id, with which it is asked again while nobody can say."""
        return self._until(lambda: self._client.post(*path, body=body), _always, path, CALL_SECONDS)

    def decided(self, uuid: str) -> Document:
        """Return a plan once it is decided."""
        plan = self._look(lambda told: told["state"] != "deciding", self._group.decide_seconds, "plans", uuid)
        if plan["state"] in ("failed", "cancelled"):
            raise MemoryServiceError(f"plan {uuid} is {plan['state']}: {plan['reason']}")
        return plan

    def ended_plan(self, uuid: str) -> Document:
        """Return a plan once it has ended."""
        return self._look(lambda told: told["ended_at"] is not None, self._group.action_seconds, "plans", uuid)

    def settled_host(self, name: str, *states: str) -> Document:
        """Return a host's newest sleep once it is in one of these states, or has ended."""

        def settled(told: Document) -> bool:
            sleep = told["sleep"]
            return sleep is not None and (sleep["state"] in states or sleep["ended_at"] is not None)

        sleep: Document = self._look(settled, self._group.action_seconds, "hosts", name)["sleep"]
        return sleep

    def _look(self, reached: Callable[[Document], bool], seconds: float, *path: str) -> Document:
        return self._until(lambda: self._client.get(*path), reached, path, seconds)

    def _until(
        self, call: Callable[[], Document], reached: Callable[[Document], bool], path: tuple[str, ...], seconds: float
    ) -> Document:
        """Call until what is told is wanted; while nobody can say, as between two leaders, call again."""
        ends, pause = time.monotonic() + seconds, threading.Event()
        while True:
            told = self._told(call)
            if told is not None and reached(told):
                return told
            if time.monotonic() >= ends:
                word = "was not answered" if told is None else "has not ended, and goes on,"
                raise MemoryServiceError(
                    f"{' '.join(path)} {word} after {seconds:g} s; look at it with `openstack memory`"
                )
            pause.wait(self._group.poll_seconds)

    @staticmethod
    def _told(call: Callable[[], T]) -> T | None:
        """Call once; None while nobody can say."""
        try:
            return call()
        except ks_exc.ConnectFailure:
            return None
        except ApiError as error:
            if error.status == 503:
                return None
            raise MemoryServiceError(str(error)) from error
        except ks_exc.ClientException as error:
            raise MemoryServiceError(f"the memory service does not answer: {error}") from error


def _always(_told: Document) -> bool:
    return True
