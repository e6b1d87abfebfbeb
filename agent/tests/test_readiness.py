"""Telling systemd: once, when the agent serves, and by nobody before."""

import socket
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_service import systemd

from pondstack.rpc import transport as rpc
from pondstack_agent import readiness
from pondstack_agent.service import AgentService


def test_systemd_is_told_once_the_agent_serves(
    conf: cfg.ConfigOpts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.get_oslo_transport(conf, "fake://").cleanup()
    conf.set_override("transport_url", "fake://")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as heard:
        heard.bind(str(tmp_path / "notify"))
        monkeypatch.setenv(readiness.SOCKET, str(tmp_path / "notify"))
        service = AgentService(conf, readiness.withheld())
        systemd.notify_once()  # as the parent process of oslo.service does, before the agent has started
        with pytest.raises(BlockingIOError):
            heard.recv(512)
        service.start()
        try:
            assert heard.recv(512) == b"READY=1"
        finally:
            service.stop()
        service.wait()


def test_outside_of_systemd_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(readiness.SOCKET, raising=False)
    environment: dict[str, str] = {}
    readiness.withheld(environment)()
    assert environment == {}
