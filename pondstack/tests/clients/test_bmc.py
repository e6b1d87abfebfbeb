"""Hosts that are reached out of band: Redfish against the emulator of sushy-tools, the others against stand-ins."""

import json
import socket
import stat
from pathlib import Path

import pytest
import wsgi_intercept
from sushy_tools.emulator import main as emulator
from wsgi_intercept.interceptor import RequestsInterceptor

from pondstack.clients.bmc import Ipmi, Redfish, WakeOnLan, load_bmcs
from pondstack.domain.errors import BadRequest, Unavailable

pytestmark = pytest.mark.unit

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
SYSTEM = f"/redfish/v1/Systems/{UUID}"


class EmulatedBmc:
    """What the emulator knows of the host."""

    def __init__(self, url: str) -> None:
        self.redfish = Redfish.of({"url": url, "system": SYSTEM})

    @property
    def system(self):
        return emulator.app.systems._systems[UUID]

    @property
    def pending(self) -> str:
        """What it was told to become: its power takes seconds, by its own clock."""
        return (self.system.get("pending_power") or {}).get("power_state", "")

    def is_(self, state: str) -> None:
        emulator.app.systems._update(UUID, power_state=state, pending_power=None)


@pytest.fixture
def bmc(tmp_path):
    system = {"uuid": UUID, "name": "h1", "power_state": "Off", "nics": [{"mac": "52:54:00:12:34:56", "ip": "::1"}]}
    emulator.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [system],
            "SUSHY_EMULATOR_STATE_DIR": str(tmp_path),
        }
    )
    with RequestsInterceptor(lambda: emulator.app, host="bmc.test", port=80) as url:
        yield EmulatedBmc(url)
    wsgi_intercept.remove_wsgi_intercept("bmc.test", 80)


def test_redfish_switches_on_what_is_off_and_leaves_alone_what_runs(bmc):
    bmc.is_("Off")
    bmc.redfish.wake()
    assert bmc.pending == "On"
    bmc.is_("On")
    bmc.redfish.wake()
    assert bmc.pending == ""


def test_redfish_cycles_the_power_of_one_that_runs(bmc):
    """Also of one in S3, which Redfish takes for running."""
    bmc.is_("On")
    bmc.redfish.reset()
    assert bmc.pending == "ForceRestart"


def test_a_system_that_a_bmc_does_not_have(bmc):
    with pytest.raises(Unavailable, match="does not do it"):
        Redfish(bmc.redfish._root, "/redfish/v1/Systems/another").wake()


@pytest.fixture
def ipmitool(tmp_path):
    program = tmp_path / "ipmitool"
    program.write_text('#!/bin/sh\necho "$IPMI_PASSWORD $*" >> $0.log\nexit $(cat $0.code)\n')
    program.chmod(0o700)
    Path(f"{program}.code").write_text("0")
    return program


def test_ipmi_keeps_the_password_off_the_command_line(ipmitool):
    bmc = Ipmi("bmc1", "admin", "secret", str(ipmitool))
    bmc.wake()
    bmc.reset()
    words = "secret -I lanplus -H bmc1 -U admin -E chassis power"
    assert Path(f"{ipmitool}.log").read_text().splitlines() == [f"{words} on", f"{words} reset"]


def test_ipmi_that_fails(ipmitool):
    Path(f"{ipmitool}.code").write_text("1")
    with pytest.raises(Unavailable, match="on fails"):
        Ipmi("bmc1", "admin", "secret", str(ipmitool)).wake()
    with pytest.raises(Unavailable, match="no answer"):
        Ipmi("bmc1", "admin", "secret", str(ipmitool) + "-none").wake()


def test_wake_on_lan_sends_the_packet_of_the_card():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(60.0)
        bmc = WakeOnLan("52:54:00:12:34:56", "127.0.0.1", heard.getsockname()[1])
        bmc.wake()
        assert heard.recv(1024) == b"\xff" * 6 + bytes.fromhex("525400123456") * 16
    assert not bmc.resets
    with pytest.raises(Unavailable):
        bmc.reset()
    with pytest.raises(BadRequest, match="no address"):
        WakeOnLan("52:54:00")


def write(tmp_path, content, mode=0o600):
    file = tmp_path / "bmcs.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)
    return str(file)


def test_hosts_are_told_apart_by_the_file(tmp_path):
    entries = {
        "h1": {"driver": "redfish", "url": "https://bmc1", "system": "/redfish/v1/Systems/1"},
        "h2": {"driver": "ipmi", "address": "bmc2", "user": "admin", "password": "secret"},
        "h3": {"driver": "wol", "mac": "52:54:00:12:34:56"},
    }
    found = load_bmcs(write(tmp_path, entries))
    assert {host: type(bmc) for host, bmc in found.items()} == {"h1": Redfish, "h2": Ipmi, "h3": WakeOnLan}
    assert load_bmcs("") == {}


@pytest.mark.parametrize(
    "content", ["{", "[]", {"h1": {"driver": "telepathy"}}, {"h1": {"driver": "ipmi"}}, {"h1": {"driver": "redfish"}}]
)
def test_a_file_that_is_not_as_it_should_be(tmp_path, content):
    with pytest.raises(BadRequest, match="bmc_file"):
        load_bmcs(write(tmp_path, content))


def test_a_file_that_others_can_read(tmp_path):
    file = write(tmp_path, {}, 0o640)
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o640
    with pytest.raises(BadRequest, match="chmod 600"):
        load_bmcs(file)
