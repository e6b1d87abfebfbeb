"""Has the rack's nova-scheduler tell how it weighs hosts, and no VM mitigated, for as long as a replay takes."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oslo_log import log as logging

from pondstack.domain.qos import QosMode
from pondstack_rack import config
from pondstack_rack.layout import RackError
from pondstack_rack.rack import Rack

QOS_MODE = re.compile(r"(\[qos\]\n(?:[^\[\n].*\n)*?mode = )\w+\n")
TOLD = ("nova.weights=DEBUG", "nova.scheduler.manager=DEBUG")


@contextmanager
def told(folder: Path, io_ops_weight: float | None) -> Iterator[Callable[[], list[str]]]:
    """Yield what returns the lines that nova-scheduler has written since it was restarted with its weights told.

    No VM is moved meanwhile because of its pool memory: the planner moves none. `io_ops_weight`: of Nova's IoOpsWeigher
    for as long; None: as Nova is set. Raises RackError, OSError.
    """
    rack = Rack.open(folder)
    log = rack.layout.log / "nova-scheduler.log"
    begun = log.stat().st_size
    controllers = [name for name in rack.services if name.startswith("pondstack-controller")]
    with (
        _changed(rack, "nova.conf", lambda text: telling(text, io_ops_weight), ["nova-scheduler"]),
        _changed(rack, "pondstack.conf", unmoved, controllers),
    ):
        yield lambda: _since(log, begun)


@contextmanager
def _changed(rack: Rack, name: str, change: Callable[[str], str], services: Sequence[str]) -> Iterator[None]:
    """Have services run with a changed file for as long; put back first what a replay that was killed left."""
    path = rack.layout.etc / name
    restore(path)
    text = path.read_text()
    changed = change(text)
    try:
        config.write(kept(path).with_suffix(".new"), text).replace(kept(path))
        config.write(path, changed)
        _restart(rack, services)
        yield
    finally:
        restore(path)
        _restart(rack, services)


def _restart(rack: Rack, services: Sequence[str]) -> None:
    for name in services:
        rack.service(name).restart()


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


def unmoved(text: str) -> str:
    """Return a configuration of the controllers that has no VM mitigated; raises RackError where it lacks the mode."""
    changed, count = QOS_MODE.subn(rf"\g<1>{QosMode.DRY_RUN}\n", text)
    if not count:
        raise RackError("the rack's pondstack.conf has no mode in [qos]: make rack-down, then make rack")
    return changed


def _with(text: str, section: str, line: str) -> str:
    head = f"[{section}]\n"
    if head not in text:
        raise RackError(f"the rack's nova.conf has no section [{section}]: make rack-down, then make rack")
    return text.replace(head, f"{head}{line}\n", 1)


def _since(log: Path, begun: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace").splitlines()
