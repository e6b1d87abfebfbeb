"""What a host lacks for the data plane is named, with what to do."""

from pathlib import Path

import pytest

from pondstack_agent.data_plane.preflight import missing


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "program"
    made.touch(mode=0o755)
    return made


@pytest.fixture
def sysctl(tmp_path: Path) -> Path:
    made = tmp_path / "sysctl"
    made.write_text("1\n")
    return made


@pytest.mark.parametrize("release", ["5.19.0", "6.1.0-9-amd64", "10.0"])
def test_nothing_is_missing(sysctl: Path, program: Path, release: str) -> None:
    assert missing(release, sysctl, program) == []


@pytest.mark.parametrize("release", ["5.18.19", "4.20", "strange"])
def test_the_kernel(sysctl: Path, program: Path, release: str) -> None:
    (reason,) = missing(release, sysctl, program)
    assert reason == f"the kernel is Linux {release}, and 5.19 or later is needed"


def test_the_setting_and_the_program(sysctl: Path, tmp_path: Path) -> None:
    sysctl.write_text("0\n")
    setting, built = missing("6.1", sysctl, tmp_path / "nowhere")
    assert "vm.unprivileged_userfaultfd = 1 into a file of /etc/sysctl.d" in setting
    assert "libjansson-dev" in built


def test_a_kernel_without_userfaultfd(program: Path, tmp_path: Path) -> None:
    (reason,) = missing("6.1", tmp_path / "nothing", program)
    assert "CONFIG_USERFAULTFD" in reason


def test_this_host_is_looked_at() -> None:
    assert all("unprivileged_userfaultfd" in reason or "was not built" in reason for reason in missing())
