"""Samples on their way from an agent into the database, over a message bus."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from sqlalchemy import select

from pondstack.db.models import TelemetryRow
from pondstack.domain.errors import NotLeader
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.wire import Sample

SAMPLES = [
    Sample("vm", "untouched_mib", None, 1.5, 2, 1.0, 2.0, 3.0),
    Sample("vm", "hot_mib", 1, reason="not yet"),
]


@contextmanager
def serving(endpoint: Any) -> Iterator[ControllerAPI]:
    """An endpoint on a bus of its own, and a client."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    transport = rpc.get_transport(conf, Role.CONTROLLER, "fake://")
    server = transport.server(targets.controller_target("c1"), [endpoint])
    server.start()
    try:
        yield ControllerAPI(transport, timeout_seconds=10)
    finally:
        server.stop()
        server.wait()
        transport.cleanup()


def kept(rack: Any) -> list[tuple[Any, ...]]:
    query = select(TelemetryRow).order_by(TelemetryRow.metric)
    rows = rack.database.read(lambda session: session.execute(query).scalars().all())
    return [(row.host, row.metric, row.node, row.readings, row.mean, row.reason) for row in rows]


def test_samples_arrive(rack: Any) -> None:
    with serving(rack.endpoint) as controller:
        controller.telemetry(host="h1", samples=SAMPLES)
    assert kept(rack) == [("h1", "hot_mib", 1, 0, None, "not yet"), ("h1", "untouched_mib", -1, 2, 2.0, "")]


def test_who_does_not_lead_keeps_nothing_and_is_not_asked_again(rack: Any) -> None:
    rack.endpoint.gate.shut("handed over")
    with serving(rack.endpoint) as controller, pytest.raises(NotLeader):
        controller.telemetry(host="h1", samples=SAMPLES)
    assert kept(rack) == []


class FormerController:
    """An endpoint of the release before: it knows nothing of telemetry."""

    target = oslo_messaging.Target(version=targets.RPC_VERSION)


def test_a_controller_of_the_former_release_refuses_without_harm() -> None:
    with serving(FormerController()) as controller:
        with pytest.raises(oslo_messaging.MessagingException):
            controller.telemetry(host="h1", samples=SAMPLES)
