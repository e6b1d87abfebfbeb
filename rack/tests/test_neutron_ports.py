"""Ports of the rack's servers: bound wherever they go."""

from types import SimpleNamespace
from typing import Any

from neutron_lib.plugins.ml2 import api

from pondstack_rack import config
from pondstack_rack.services import neutron_ports


def test_a_port_is_active_as_soon_as_it_is_bound() -> None:
    """To the first segment of its network, as what no driver of Nova plugs."""
    bound: list[Any] = []
    context = SimpleNamespace(
        segments_to_bind=[{api.ID: "first"}, {api.ID: "second"}],
        set_binding=lambda *args, **more: bound.append((*args, more)),
    )
    neutron_ports.UnwiredPorts().bind_port(context)
    assert bound == [("first", "other", {}, {"status": "ACTIVE"})]


def test_the_rack_uses_it() -> None:
    """By the name of its entry point."""
    assert "mechanism_drivers = pondstack_unwired\n" in config.template("neutron.conf")
