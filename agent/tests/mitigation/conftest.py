"""The agent over a fake kernel."""

import pytest

from .mitigated_host import Host, Kernel


@pytest.fixture
def host(rig, monkeypatch, tmp_path, device):
    """A host whose guest vm1 has 2 MiB of the pool."""
    made = Host(rig, Kernel(), monkeypatch, tmp_path, device)
    rig.attach("op1")
    return made
