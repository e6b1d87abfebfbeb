"""Who may hear what a server holds on this host: its own nova-compute, and that of the host that it moves to.

A live migration is prepared at its destination, which asks the source what the server holds. Who that may be, this host
does not know: it asks the controllers, which see ledger and Placement. What is not held here nobody is asked about.
"""

from pondstack.domain.errors import Refused
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Identity


class Askers:
    """The rule of get_attachment."""

    def __init__(self, host: str, controller: ControllerAPI) -> None:
        self._host, self._controller = host, controller

    def check(self, caller: Identity | None, consumer_uuid: str) -> None:
        """Raise Refused unless a caller may hear what a consumer holds, Unavailable while no controller says.

        None: nobody signed the call, which the border lets in within one process and for an upgrade only.
        """
        if caller is None or caller.name == self._host:
            return
        about = {"host": self._host, "consumer_uuid": consumer_uuid, "destination": caller.name}
        if not self._controller.confirm_migration(**about):
            raise Refused(
                f"{caller} asked what server {consumer_uuid} holds on {self._host}, which does not move there"
            )
