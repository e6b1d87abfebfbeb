"""Has a host of these tests served by a data plane that is a process."""

from pathlib import Path

from pondstack_agent.data_plane.client import ControlClient
from pondstack_agent.data_plane.guest_memory import FindMemory, find_memory, start_of

from ..lending.conftest import DEADLINE_SECONDS
from .conftest import Rack, RemoteHost


def use(
    host: RemoteHost, rack: Rack, folder: Path, find: FindMemory = find_memory, mirrors: Path | None = None
) -> None:
    """Have it served from now on by the data plane in `folder`; `mirrors`: where, by default, all hosts have theirs."""
    mirrors = mirrors or rack.root / "mirrors"
    mirrors.mkdir(exist_ok=True)
    host.conf.set_override("folder", str(folder), group="data_plane")
    host.conf.set_override("mirror_folder", str(mirrors), group="data_plane")
    host.real = (ControlClient(folder, DEADLINE_SECONDS), find, start_of)
    host.restart()
