"""A module of two lines in Nova's own package, by which nova-compute finds our drivers.

Nova loads compute drivers from `nova.virt` only. To ship a folder `nova/` of our own would do where both are installed
into the same folder, and nowhere else: Nova as a checkout (`pip install -e`, DevStack) loses its own `nova/__init__.py`
to such a folder, and Nova as a package of the distribution does not see it.
"""

from importlib.util import find_spec
from pathlib import Path

from pondstack.domain.errors import BadRequest

NAME = "pond.py"
TEXT = '''"""pondstack's compute drivers; written by `pondstack-manage nova link`, removed by `nova unlink`."""
from pondstack_nova.drivers import __getattr__  # noqa: F401
'''


def link(folder: Path) -> str:
    """Write the module into `nova.virt`; may be repeated. Raises BadRequest, OSError."""
    target = _target(folder)
    if _written(target) != TEXT:
        # Whole or not at all: of half a module nobody could tell whose it is.
        new = _unfinished(target)
        new.write_text(TEXT)
        new.replace(target)
    return f"{target}: compute_driver may be pond.PondLibvirtDriver"


def unlink(folder: Path) -> str:
    """Remove the module; may be repeated. Raises BadRequest, OSError."""
    target = _target(folder)
    target.unlink(missing_ok=True)
    _unfinished(target).unlink(missing_ok=True)
    return f"{target}: not there"


def nova_folder() -> Path:
    """Return the folder of `nova.virt` of the Nova that this Python would load; raises BadRequest."""
    spec = find_spec("nova")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "virt" / "driver.py").is_file():
            return Path(place) / "virt"
    raise BadRequest("this Python finds no Nova: run the pondstack-manage of the environment that nova-compute runs in")


def _target(folder: Path) -> Path:
    target = folder / NAME
    if target.exists() and "pondstack-manage nova link" not in _written(target):
        raise BadRequest(f"{target} is not pondstack's: move it away; nothing was changed")
    return target


def _unfinished(target: Path) -> Path:
    """Return what a link that was interrupted leaves."""
    return target.with_name(f"{NAME}.new")


def _written(target: Path) -> str:
    return target.read_text() if target.exists() else ""
