"""A short `make torture-pager`: each kind of event once."""

from pathlib import Path

import pytest

from pondstack_rack.servers import MariaDBServer, RabbitMQServer
from rdma.tests.data_plane.processes import EMULATED_REST_US
from tests.fixtures.seeds import by_night, seed
from tests.robustness.brokers import OneNode
from tests.robustness.databases import SingleMariaDB
from tests.robustness.extension.faults import KINDS
from tests.robustness.extension.report import missed, text
from tests.robustness.extension.run import Options, run


@pytest.mark.timeout(1200)
def test_a_guest_survives_all_that_it_needs(rabbitmq: RabbitMQServer, mariadb: MariaDBServer, tmp_path: Path) -> None:
    mariadb.start()  # a test may have left it stopped
    options = Options(by_night(5, 1) * 0.4, seed(20), by_night(5, 1) * len(KINDS), by_night(0, EMULATED_REST_US))
    result = run(options, tmp_path, OneNode(rabbitmq.directory), SingleMariaDB(mariadb.directory), print)
    print(text(result))
    assert missed(result) == []
