"""Has the rack's nova-scheduler tell how it weighs hosts, for as long as a replay takes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from oslo_log import log as logging

from pondstack_rack import config
from pondstack_rack.layout import RackError
from pondstack_rack.rack import Rack

TOLD = ("nova.weights=DEBUG", "nova.scheduler.manager=DEBUG")


@contextmanager
def told(folder: Path, io_ops_weight: float | None) -> Iterator[Callable[[], list[str]]]:
    """Yield what returns the lines that nova-scheduler has written since it was restarted with its weights told.

    `io_ops_weight`: of Nova's IoOpsWeigher for as long; None: as Nova is set. Raises RackError, OSError.
    """
    rack = Rack.open(folder)
    path, log = rack.layout.etc / "nova.conf", rack.layout.log / "nova-scheduler.log"
    restore(path)
    text, begun = path.read_text(), log.stat().st_size
    changed = telling(text, io_ops_weight)
    try:
        config.write(kept(path).with_suffix(".new"), text).replace(kept(path))
        config.write(path, changed)
        rack.service("nova-scheduler").restart()
        yield lambda: _since(log, begun)
    finally:
        restore(path)
        rack.service("nova-scheduler").restart()


def kept(path: Path) -> Path:
    """Return where a configuration is kept while another one stands in its place."""
    return path.with_name(f"{path.name}.before-replay")


def restore(path: Path) -> None:
    """Put back what is kept, of a replay that was killed, too; nothing is: nothing changes."""
    if kept(path).exists():
        kept(path).replace(path)


def telling(text: str, io_ops_weight: float | None) -> str:
    """Return a configuration of Nova that tells weights; raises RackError where it lacks a section."""
    levels = ",".join([*logging.get_default_log_levels(), *TOLD])
    text = _with(text, "DEFAULT", f"default_log_levels = {levels}")
    if io_ops_weight is None:
        return text
    return _with(text, "filter_scheduler", f"io_ops_weight_multiplier = {io_ops_weight}")


def _with(text: str, section: str, line: str) -> str:
    head = f"[{section}]\n"
    if head not in text:
        raise RackError(f"the rack's nova.conf has no section [{section}]: make rack-down, then make rack")
    return text.replace(head, f"{head}{line}\n", 1)


def _since(log: Path, begun: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace").splitlines()
