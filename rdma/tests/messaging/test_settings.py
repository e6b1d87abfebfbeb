"""[rpc] of a configuration file, as the driver takes it."""

from pathlib import Path

import pytest
from oslo_config import cfg

from pondstack.conf import rpc as rpc_conf
from pondstack_rdma.messaging.settings import Settings
from pondstack_rdma.verbs import VerbsTransport


def settings(folder: Path, *lines: str) -> Settings:
    """Return the settings of a file with these lines."""
    path = folder / "pondstack.conf"
    path.write_text("\n".join(["[rpc]", *lines]))
    conf = cfg.ConfigOpts()
    rpc_conf.register_opts(conf)
    conf(["--config-file", str(path)], project="pondstack")
    return Settings.from_conf(conf)


@pytest.mark.parametrize("address", ["", "192.0.2.7", "2001:db8::7"])
def test_servers_of_verbs_listen_where_the_file_says(address: str, tmp_path: Path) -> None:
    lines = [f"transport_options = host:{address}"] if address else []
    transport = settings(tmp_path, "transport = verbs", *lines).transport
    assert isinstance(transport, VerbsTransport)
    assert transport._host == address


def test_an_option_that_the_transport_does_not_have_stops_its_process(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\[rpc\] the transport verbs does not take the options"):
        settings(tmp_path, "transport = verbs", "transport_options = address:192.0.2.7")
