"""The runbooks of doc/source/admin/maintenance.md have commands; that they exist is tested in test_commands.py.

What the commands do, and what refuses them, is tested in tests/functional/test_removal.py and beside the command line.
"""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "maintenance.md"


def test_the_runbooks_have_commands() -> None:
    for title in ("Return all pool memory of a host", "Remove a compute host", "Replace a pool device"):
        (part,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        assert "openstack memory" in part
