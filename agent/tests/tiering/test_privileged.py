"""What runs as root writes the tiering settings and nothing else."""

import pytest

from pondstack_agent.tiering import privileged
from pondstack_agent.tiering.policy import WEIGHTS


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "sys/kernel/mm/numa/demotion_enabled",
        "/proc/sys/vm/overcommit_memory",
        f"/{WEIGHTS}/../../numa/demotion_enabled",
        f"/{WEIGHTS}/node0/x",
    ],
)
def test_other_files_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no tiering setting"):
        privileged.write(path, "1")


def test_what_the_kernel_says_is_returned() -> None:
    assert privileged.write(f"/{WEIGHTS}/node9999", "1") == "No such file or directory"
