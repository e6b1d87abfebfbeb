"""A request to end, such as ctrl-C: what the run made is undone, and no turn begins any more."""

import contextlib
import signal
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_heard: list[int] = []


def check() -> None:
    """Raise SystemExit once a signal was heard. Python swallows what a handler raises in a hook of fork(2)."""
    if _heard:
        raise SystemExit(128 + _heard[0])


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Raise SystemExit at the first signal; the ones after it are not heard, so that all is undone."""

    def end(number: int, _frame: object) -> None:
        if not _heard:
            _heard.append(number)
            check()

    # SIGINT, too: a shell has its background processes ignore it.
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _heard.clear()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Undo something in this block, to its end: a signal is heard after it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
