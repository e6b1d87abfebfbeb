"""A mechanism driver for Neutron's ML2 that binds every port wherever it goes, and wires none.

Servers of fake computes have ports with it, as much as they have anything. Those of libvirt hosts boot without a port.
"""

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class UnwiredPorts(api.MechanismDriver):
    """A port is active as soon as it has a host."""

    def initialize(self) -> None:
        """Begin; there is nothing to do."""

    def bind_port(self, context: Any) -> None:
        """Bind a port to the first segment of its network."""
        segment = context.segments_to_bind[0][api.ID]
        context.set_binding(segment, portbindings.VIF_TYPE_OTHER, {}, status=constants.PORT_STATUS_ACTIVE)
