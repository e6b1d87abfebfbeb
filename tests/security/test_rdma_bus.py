"""Calls that go over RDMA beside the broker are signed and judged as all others: there is no way around the border."""

import pytest
from oslo_config import cfg

from pondstack.conf import rpc as rpc_conf
from pondstack.domain.errors import BadRequest
from pondstack.rpc import transport
from pondstack.rpc.identity.identity import Identity, Role
from tests.fixtures.identities import Identities

URLS = ("rabbit://host/", "pond+rabbit://host/")


def configured(way: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    rpc_conf.register_opts(conf)
    conf.set_override("transport", way, group="rpc")
    return conf


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("way", ["", "shm", "tcp", "verbs"])
def test_calls_over_rdma_pass_the_border_too(tmp_path, way: str, url: str) -> None:
    conf = configured(way)
    Identities(tmp_path).set(conf, "agent/h1")
    border = transport.border_of(conf, Identity(Role.AGENT, "h1"), url)
    assert border is not None
    assert not border.permissive


@pytest.mark.parametrize("url", URLS)
def test_who_has_no_credential_has_no_bus(tmp_path, url: str) -> None:
    conf = configured("shm")
    Identities(tmp_path).set(conf)
    with pytest.raises(BadRequest, match="agent-h1"):
        transport.border_of(conf, Identity(Role.AGENT, "h1"), url)
