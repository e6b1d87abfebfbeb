"""Refuses, at load, a Nova whose internal hooks changed: by behaviour, not by version (master says 33.1.0.dev)."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from nova import objects
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class HookChanged(RuntimeError):
    """An internal hook of Nova is not what pondstack relies on; the text names it and says what to do."""

    def __init__(self, hook: str, detail: str) -> None:
        super().__init__(
            f"Nova's internal hook {hook} changed: {detail}. This pondstack does not fit this Nova: install a "
            f"pondstack release that names it, or take pondstack out of nova.conf."
        )
        self.hook = hook


Check = tuple[str, Callable[[], None]]


def expect(condition: bool, found: str) -> None:
    """Fail a check with what was found instead (an assert would vanish under python -O)."""
    if not condition:
        raise RuntimeError(found)


@contextlib.contextmanager
def swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Put a probe in the place of an attribute for a moment."""
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def run(checks: list[Check]) -> None:
    """Run named checks in order; raises HookChanged with the name of the first that fails, however it fails."""
    objects.register_all()  # a service has done it; tools that only import Nova's API have not
    for hook, check in checks:
        try:
            check()
        except HookChanged:
            raise
        except Exception as error:
            raise HookChanged(hook, f"{type(error).__name__}: {error}") from error
    LOG.debug("Nova's hooks are as expected: %s", ", ".join(hook for hook, _ in checks))
