"""What `make tempest` and the plugin's service command do on the running rack."""

import os
import re
from pathlib import Path

import pytest

import pondstack_tempest
from pondstack_rack import cli
from pondstack_rack.rack import Rack
from tests.fixtures.tiers import required_tiers

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]


def smoke_tests() -> int:
    """Count the plugin's tests that are marked so."""
    sources = Path(pondstack_tempest.__file__).parent.rglob("test_*.py")
    return sum(len(re.findall(r'@decorators\.attr\(type=.*"smoke"', path.read_text())) for path in sources)


def test_our_smoke_tests_pass(rack: Rack, capfd: pytest.CaptureFixture[str], tempest_told: list[str]) -> None:
    """A test of each noun of the API, and a guest that sees its node without CPUs; a skip has its reason."""
    status = cli.main(["--directory", str(rack.layout.root), "tempest", "--passes", "pondstack", "--regex", "smoke"])
    told = capfd.readouterr().out
    skips = re.findall(r"^skipped  pondstack: \S.*: \S.*$", told, re.MULTILINE)
    figures = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", told, re.MULTILINE)
    assert figures, told
    tempest_told += [*skips, figures[0].strip()]
    passed, failed, skipped = map(int, figures.groups())
    assert (status, failed) == (0, 0), told
    assert passed + skipped == smoke_tests()
    assert len(skips) == skipped
    if "rack" in required_tiers(os.environ):
        assert skips == [], "our rack has all that these tests need: none of them may be skipped where they must run"
    assert re.search(r"test_the_guest_sees_a_node_without_cpus.* ok$", told, re.MULTILINE), told


def test_a_run_without_any_test_is_an_error(rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    """An exit status of 0 would say that all is well."""
    words = ["--directory", str(rack.layout.root), "tempest", "--passes"]
    assert cli.main([*words, "pondstack", "--regex", "no_test_has_this_name"]) == 1
    assert "ran no test of pondstack: none matches no_test_has_this_name" in capsys.readouterr().err
    assert cli.main([*words, "holiday"]) == 1
    assert "no pass holiday; there are: pondstack, stock-libvirt, stock-fake" in capsys.readouterr().err
    assert cli.main([*words, "pondstack", "--compare"]) == 1
    assert "only stock passes can be compared" in capsys.readouterr().err


def test_the_service_command_kills_and_starts(rack: Rack) -> None:
    """It is what the plugin's [pondstack] service_command is on a rack."""
    words = ["--directory", str(rack.layout.root), "service"]
    agent = rack.service("pondstack-agent-fake1")
    assert cli.main([*words, "kill", "pondstack-agent", "fake1"]) == 0
    assert not agent.running
    assert cli.main([*words, "start", "pondstack-agent", "fake1"]) == 0
    assert agent.running
    assert cli.main([*words, "kill", "pondstack-agent", "nowhere"]) == 1
