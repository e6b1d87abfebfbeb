"""A service that cannot say who it is does not start: one line that says what to do, and an end."""

import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 60
PROGRAMS = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("program", "file"), [("pondstack-agent", "agent-h1"), ("pondstack-controller", "controller-c1")]
)
def test_without_its_credential_a_service_ends_and_says_which_one_it_needs(tmp_path, program, file):
    path = tmp_path / "service.conf"
    path.write_text(
        f"[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1\nhost = h1\n[controller]\nname = c1\n"
        f"[agent]\nuser =\nstate_dir = {tmp_path}/state\n[pondstack_identity]\nfolder = {tmp_path}\n"
    )
    command = [str(PROGRAMS / program), "--config-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{program}: ")
    assert f"{file}.pem" in last
    assert "pondstack-manage credentials issue" in last
    assert "Traceback" not in done.stderr
