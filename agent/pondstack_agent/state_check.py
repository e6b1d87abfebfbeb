"""The agent's state folder as a whole, looked through before anything of it is believed."""

from pathlib import Path

from pondstack_agent.records import load, paths
from pondstack_agent.state_shapes import SHAPES


def check_state(state_dir: Path) -> int:
    """Return how many records there are; raises DeviceFailed, which names the first one that is damaged."""
    folders = [state_dir / name for name in sorted(SHAPES)]
    return sum(load(path) is not None for folder in folders if folder.is_dir() for path in paths(folder))
