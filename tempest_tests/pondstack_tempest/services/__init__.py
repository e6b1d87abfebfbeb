"""Clients of the REST API on tempest.lib, one for each noun."""

from pondstack_tempest.services.agent import AgentsClient
from pondstack_tempest.services.allocation import AllocationsClient
from pondstack_tempest.services.audit import AuditsClient
from pondstack_tempest.services.buffer import BuffersClient
from pondstack_tempest.services.controller import ControllersClient
from pondstack_tempest.services.history import HistoryClient
from pondstack_tempest.services.host import HostsClient
from pondstack_tempest.services.leader import LeaderClient
from pondstack_tempest.services.lender import LendersClient
from pondstack_tempest.services.loan import LoansClient
from pondstack_tempest.services.mitigation import MitigationsClient
from pondstack_tempest.services.model import ModelsClient
from pondstack_tempest.services.plan import PlansClient
from pondstack_tempest.services.planner_job import PlannerJobsClient
from pondstack_tempest.services.pool import PoolsClient
from pondstack_tempest.services.project import ProjectsClient
from pondstack_tempest.services.qos import QosClient
from pondstack_tempest.services.root import RootClient
from pondstack_tempest.services.share import SharesClient
from pondstack_tempest.services.slice import SlicesClient
from pondstack_tempest.services.split import SplitsClient
from pondstack_tempest.services.telemetry import TelemetryClient

__all__ = [
    "AgentsClient",
    "AllocationsClient",
    "AuditsClient",
    "BuffersClient",
    "ControllersClient",
    "HistoryClient",
    "HostsClient",
    "LeaderClient",
    "LendersClient",
    "LoansClient",
    "MitigationsClient",
    "ModelsClient",
    "PlannerJobsClient",
    "PlansClient",
    "PoolsClient",
    "ProjectsClient",
    "QosClient",
    "RootClient",
    "SharesClient",
    "SlicesClient",
    "SplitsClient",
    "TelemetryClient",
]
