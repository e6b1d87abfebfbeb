"""The plugins' way to pondstack-controller, for threads in the background: no request waits for a call of it."""

from collections.abc import Callable

import nova.conf

from pondstack.conf import scheduler as conf
from pondstack.rpc import transport as rpc
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.identity.revocations import Revocations

CONF = nova.conf.CONF
conf.register_opts(CONF)

REVOCATIONS = Revocations()
"""Whose answers this process does not believe any more; each snapshot of a controller brings them."""


def make_api() -> ControllerAPI:
    """Return a client on pondstack's bus (nova's, unless [pondstack] transport_url says otherwise)."""
    bus = rpc.get_transport(CONF, Role.SCHEDULER, CONF.pondstack.transport_url, revocations=REVOCATIONS)
    return ControllerAPI(bus)


def lazy_api() -> Callable[[], ControllerAPI]:
    """Return what gives one client, made at the first call by the thread that uses it.

    Connecting may block, and an attempt that failed must be made anew.
    """
    apis: list[ControllerAPI] = []

    def api() -> ControllerAPI:
        if not apis:
            apis.append(make_api())
        return apis[0]

    return api
