"""pondstack-controller under oslo.service: one node of the election in one process."""

import threading

from oslo_config import cfg
from oslo_service import service

from pondstack.conf import consolidation as consolidation_conf
from pondstack.conf import controller as controller_conf
from pondstack.conf import database as database_conf
from pondstack.conf import ha as ha_conf
from pondstack.conf import metrics as metrics_conf
from pondstack.conf import mitigation as mitigation_conf
from pondstack.conf import model as model_conf
from pondstack.conf import notifications as notifications_conf
from pondstack.conf import nova as nova_conf
from pondstack.conf import placement as placement_conf
from pondstack.conf import planner as planner_conf
from pondstack.conf import prediction as prediction_conf
from pondstack.conf import qos as qos_conf
from pondstack.conf import rpc as rpc_conf
from pondstack.conf import sizing as sizing_conf
from pondstack.conf import sleep as sleep_conf
from pondstack.conf import telemetry as telemetry_conf
from pondstack.controller.node.node import Node


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of the controller."""
    ours = (controller_conf, database_conf, ha_conf, notifications_conf, nova_conf, placement_conf, sizing_conf)
    for module in (
        *ours,
        consolidation_conf,
        metrics_conf,
        mitigation_conf,
        model_conf,
        planner_conf,
        prediction_conf,
        qos_conf,
        rpc_conf,
        sleep_conf,
        telemetry_conf,
    ):
        module.register_opts(conf)


class ControllerService(service.ServiceBase):
    """The controller under oslo.service. Nothing is made before start(): oslo.service may have forked."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._node: Node | None = None
        self._done: threading.Event | None = None

    def start(self) -> None:
        """Stand by, and lead when elected."""
        self._done = threading.Event()
        self._node = Node(self._conf)
        self._node.start()

    def stop(self, graceful: bool = True) -> None:
        """Hand the lead over, drain and end."""
        del graceful
        if self._node is not None:
            self._node.stop()
        if self._done is not None:
            self._done.set()

    def wait(self) -> None:
        """Wait until it was stopped."""
        if self._done is not None:
            self._done.wait()

    def reset(self) -> None:
        """SIGHUP: oslo.service has taken the mutable options over; everything reads them afresh."""
