"""Calls with their place in the history: repeated with the same operation id until they are answered."""

import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import oslo_messaging
from kombu.exceptions import OperationalError

from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.model import Extent, indexes_of
from tests.robustness.history import Call, Kind, Outcome, Recorder

T = TypeVar("T")
NO_ANSWER = (oslo_messaging.MessagingException, OperationalError, OSError, Unavailable)
"""After any of these the caller knows nothing: neither that it happened nor that it did not."""

AGAIN_SECONDS = 0.2
PERSIST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What became of a call; `value` is None unless it was answered with success."""

    outcome: Outcome
    value: T | None = None


class Caller:
    """Records every call of one worker; `over` ends repetitions, `rng` makes the operation ids."""

    def __init__(self, recorder: Recorder, over: threading.Event, rng: random.Random) -> None:
        self._recorder = recorder
        self.over = over
        self.rng = rng

    def new_id(self) -> str:
        """Return an operation id of the seeded generator."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def persist(
        self, kind: Kind, host: str, about: dict[str, Any], call: Callable[[], T], *, tries: float = float("inf")
    ) -> Answer[T]:
        """Call until there is an answer, `tries` times at most; `about`: values of Call."""
        begun = time.monotonic()
        made = 0
        while True:
            try:
                answer = call()
            except NO_ANSWER as error:
                made += 1
                if made >= tries or self.over.is_set() or time.monotonic() - begun > PERSIST_SECONDS:
                    self._note(kind, host, about, begun, None, Outcome.UNKNOWN, error=_text(error))
                    return Answer(Outcome.UNKNOWN)
                self.over.wait(AGAIN_SECONDS)
            except PondError as error:
                self._note(kind, host, about, begun, time.monotonic(), Outcome.REFUSED, error=_text(error))
                return Answer(Outcome.REFUSED)
            else:
                self._note(kind, host, about, begun, time.monotonic(), Outcome.OK, **granted(answer))
                return Answer(Outcome.OK, answer)

    def _note(
        self,
        kind: Kind,
        host: str,
        about: dict[str, Any],
        begun: float,
        ended: float | None,
        outcome: Outcome,
        **more: Any,
    ) -> None:
        values = {"host": host, "begun": begun, "ended": ended, "outcome": outcome, **about, **more}
        self._recorder.call(Call(kind=kind, **values))


def granted(answer: Any) -> dict[str, Any]:
    """Return what a Grant or an Attachment says of slices; nothing for other answers."""
    extents: tuple[Extent, ...] | None = getattr(answer, "extents", None)
    if extents is None:
        return {}
    return {
        "allocation_uuid": answer.allocation_uuid,
        "pool_uuid": answer.pool_uuid,
        "slices": indexes_of(extents),
        "epoch": answer.epoch,
    }


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
