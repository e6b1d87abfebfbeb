"""Imports each line of names on standard input in a process of its own, with blocked packages; prints the failures.

Run as a script: `import_each.py UNPACKED_WHEEL BLOCKED[,BLOCKED...] PRELOAD[,PRELOAD...]`. A name is `module` or
`module:attribute` (an entry point). The processes are forks of this one, which has imported nothing of ours, only what
is slow and not ours (PRELOAD): the import of a line's first name is as good as in a fresh interpreter.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

MARK = "FAILED "
"""Begins our lines: a module under test may log to standard output."""


class Blocker:
    """A finder that comes first and has none of the blocked packages, as on a machine without them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, _path: object = None, _target: ModuleType | None = None) -> None:
        """Refuse blocked packages; leave everything else to the finders behind."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked by the test)", name=name)


def prepare(wheel: str, blocked: Sequence[str], preload: Sequence[str]) -> None:
    """Make the unpacked wheel the only source of our packages."""
    # The editable install must not stand in for a module that the wheel lacks.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
    sys.path[:] = [wheel, *(entry for entry in sys.path if "__editable__" not in entry)]
    sys.meta_path.insert(0, Blocker(blocked))
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    for name in preload:
        importlib.import_module(name)
    if "nova.virt" in sys.modules:
        # An installed wheel lies in the same folder as Nova; an unpacked one has to be added to Nova's package.
        sys.modules["nova.virt"].__path__.insert(0, os.path.join(wheel, "nova", "virt"))


def load(name: str, wheel: str) -> None:
    """Import one module or resolve one entry point, and prove that it came from the wheel and pulled in no eventlet."""
    module_name, _, attribute = name.partition(":")
    module = importlib.import_module(module_name)
    found: object = module
    for part in filter(None, attribute.split(".")):
        found = getattr(found, part)
    assert (module.__file__ or "").startswith(wheel + os.sep), f"imported from {module.__file__}, not from the wheel"
    for poison in ("eventlet", "greenlet", "gevent"):
        assert poison not in sys.modules, f"{poison} was imported"


def main() -> int:
    """Return the number of failures, at most 100."""
    wheel, blocked, preload = sys.argv[1:]
    prepare(wheel, blocked.split(","), preload.split(","))
    failures = 0
    for line in sys.stdin.read().splitlines():
        child = os.fork()
        if child == 0:
            failed = [name for name in line.split() if not loads(name, wheel)]
            os._exit(bool(failed))
        failures += os.waitpid(child, 0)[1] != 0
    return min(failures, 100)


def loads(name: str, wheel: str) -> bool:
    """Load one, and print what is wrong with it."""
    try:
        load(name, wheel)
    except BaseException as error:  # noqa: BLE001 - whatever a module raises at import is the finding
        last = traceback.extract_tb(error.__traceback__)[-1]
        print(f"{MARK}{name}: {type(error).__name__}: {error} ({last.filename}:{last.lineno})", flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
