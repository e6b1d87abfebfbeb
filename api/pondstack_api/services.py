"""What the handlers reach: the ledger's read side, the controller, the policy. Tests pass their own."""

import threading

from oslo_config import cfg
from oslo_log import log
from oslo_policy import policy as oslo_policy

from pondstack.conf import consolidation as consolidation_options
from pondstack.conf import ha as ha_options
from pondstack.conf import prediction as prediction_options
from pondstack.conf import sleep as sleep_options
from pondstack.db.read.reader import SqlReader
from pondstack.domain.energy import Estimate, PowerProfile, estimate, profile_of
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.ha.broker import BrokerTerms
from pondstack.ha.terms import broker_terms_as_they_are
from pondstack.ledger.reader import Reader
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.transport import border_of
from pondstack_api import policy
from pondstack_api.controller import controller_of

LOG = log.getLogger(__name__)


class Services:
    """Built at the first use, after a pre-forking server forked: no connection is shared between processes."""

    def __init__(
        self, conf: cfg.ConfigOpts, reader: Reader | None = None, controller: ControllerAPI | None = None
    ) -> None:
        self.conf = conf
        self.enforcer: oslo_policy.Enforcer = policy.make_enforcer(conf)
        ha_options.register_opts(conf)
        prediction_options.register_opts(conf)
        consolidation_options.register_opts(conf)
        sleep_options.register_opts(conf)
        group = conf.consolidation
        self._profile: PowerProfile = profile_of(group.power_profile, group.power_percent)
        self.broker_terms: BrokerTerms = broker_terms_as_they_are(conf)
        self._reader = reader
        self._controller = controller
        if controller is None:
            _look_for_credential(conf)
        self._lock = threading.Lock()

    def energy(self, driver: str) -> Estimate:
        """Return what a host takes that sleeps by a driver."""
        return estimate(self._profile, self.conf.consolidation.host_watts, driver)

    @property
    def reader(self) -> Reader:
        """The ledger's read side."""
        with self._lock:
            if self._reader is None:
                self._reader = _make_reader(self.conf)
            return self._reader

    @property
    def controller(self) -> ControllerAPI:
        """The controller, by RPC."""
        with self._lock:
            if self._controller is None:
                self._controller = _make_controller(self.conf)
            return self._controller


def _look_for_credential(conf: cfg.ConfigOpts) -> None:
    """Say at the start already that changes will be refused; reads need no bus."""
    try:
        border_of(conf, Role.API)
    except BadRequest as error:
        LOG.error("This API serves reads only: %s", error.message)


def _make_controller(conf: cfg.ConfigOpts) -> ControllerAPI:
    try:
        return controller_of(conf)
    except BadRequest as error:
        raise Unavailable(error.message) from None


def _make_reader(conf: cfg.ConfigOpts) -> Reader:
    try:
        return SqlReader.from_conf(conf)
    except cfg.RequiredOptError as error:
        raise Unavailable(f"{error}: name the controller's database in the API's configuration") from None
