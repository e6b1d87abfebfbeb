"""The log of refusals, bounded: whoever sends messages that are refused fills no disk with them.

Of one kind, which is a text without what its sender may vary, a window has one line, and a second one at its end that
counts the others. Names of parties make kinds of their own: they are certified, so that none can be made up to hide
another's line. What is counted elsewhere, such as metrics, counts all.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
MOST_KINDS = 100
"""Lines of different kinds in a window; what comes beyond is counted together."""
BEYOND = "of further kinds"

_VARIES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?<![\w./-])\d+(?:\.\d+)?(?![\w/-])")


def kind_of(text: str) -> str:
    """Return a text without its quoted words and numbers, which a sender chooses."""
    return _VARIES.sub("*", text)


def start_timer(seconds: float, task: Callable[[], object]) -> None:
    """Run a task later, in a thread that keeps no process alive."""
    timer = threading.Timer(seconds, task)
    timer.daemon = True
    timer.start()


@dataclass
class _Kind:
    first: str
    more: int = 0


class RefusalLog:
    """Says what was refused; thread-safe. `say` logs a line, `later` runs a task after so many seconds."""

    def __init__(
        self,
        say: Callable[[str], object],
        *,
        window_seconds: float = WINDOW_SECONDS,
        most_kinds: int = MOST_KINDS,
        later: Callable[[float, Callable[[], object]], object] = start_timer,
    ) -> None:
        self._say, self._window, self._most, self._later = say, window_seconds, most_kinds, later
        self._lock = threading.Lock()
        self._kinds: dict[str, _Kind] = {}

    def note(self, text: str) -> None:
        """Log a refusal, or count it until the window ends."""
        kind = kind_of(text)
        with self._lock:
            begins = not self._kinds
            if kind not in self._kinds and len(self._kinds) >= self._most:
                kind, text = BEYOND, BEYOND
            known = self._kinds.get(kind)
            if known is not None:
                known.more += 1
            else:
                # That there is something beyond is said with its number, at the end.
                self._kinds[kind] = _Kind(text, more=1 if kind == BEYOND else 0)
        if known is None and kind != BEYOND:
            self._say(text)
        if begins:
            self._later(self._window, self._end)

    def _end(self) -> None:
        with self._lock:
            kinds, self._kinds = self._kinds, {}
        for kind in kinds.values():
            if kind.more:
                what = BEYOND if kind.first == BEYOND else f"like: {kind.first}"
                self._say(f"{kind.more} more messages within {self._window:g} s, {what}")
