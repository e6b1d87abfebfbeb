"""What our actions have in common. None holds a state of its own: what is so is asked of the memory service."""

import abc
from typing import Any
from uuid import uuid4

from watcher.applier.actions import base

from pondstack.osc.client import Document
from pondstack_watcher.service import MemoryService

UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


class MemoryAction(base.BaseAction, metaclass=abc.ABCMeta):
    """An action at the memory service. Each method raises MemoryServiceError, whose text Watcher shows."""

    description = ""

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self._operation = str(uuid4())
        self._made: MemoryService | None = None
        self._executed = False

    @property
    def service(self) -> MemoryService:
        """The memory service, by the session of Watcher's user."""
        if self._made is None:
            self._made = MemoryService(self.osc.session)
        return self._made

    def ask(self, *path: str, **body: Any) -> Document:
        """Have something done, once however often this action is begun."""
        return self.service.post(*path, body={**body, "operation_id": self._operation})

    def take_back(self, *path: str) -> Document:
        """Have it taken back."""
        return self.service.post(*path, body={"operation_id": str(uuid4())})

    @abc.abstractmethod
    def carry_out(self) -> None:
        """Do it, and wait for the end; raises where it ends otherwise than it should."""

    def check(self) -> None:
        """Raise unless it is as it should be afterwards."""

    def execute(self) -> bool:
        """Do it, and wait for the end."""
        self.carry_out()
        self._executed = True
        return True

    def post_condition(self) -> None:
        """Look at what was done: Watcher asks for it, too, where an action failed, or was cancelled before it began."""
        if self._executed:
            self.check()

    def get_description(self) -> str:
        """Return what it does."""
        return self.description

    def check_abort(self) -> bool:
        """Return that it can be aborted."""
        return True
