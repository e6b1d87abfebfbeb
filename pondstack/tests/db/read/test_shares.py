"""What is lent and what a flavor wants, added up of the ledger and of reports: over the sample rack."""

import pytest
from sqlalchemy import update

from pondstack.db.models import HostRow
from pondstack.db.read.reader import SqlReader
from pondstack.domain.lending import Lender, LenderKind
from tests.fixtures import sample_rack

CONSUMER, LIFE = sample_rack.CONSUMERS[0], sample_rack.INCARNATIONS["host-1"]


@pytest.fixture
def rack(tmp_path):
    """The database, a reader of it, and the leader's ledger."""
    database, ledger, _ = sample_rack.open_copy(tmp_path)
    yield database, SqlReader(database), ledger
    database.dispose()


def say(database, host, **values):
    """Change a host's row."""
    changed = update(HostRow).where(HostRow.name == host).values(**values)
    database.write(lambda session: session.execute(changed))


def test_an_instance_that_is_moved_counts_on_both_hosts(rack) -> None:
    database, reader, _ = rack
    say(database, "host-2", borrowed={"shares": [dict(item) for item in sample_rack.SHARES]})
    share = reader.shares.share(CONSUMER)
    assert (share.hosts, share.remote_mib, share.disk_mib, share.swap_mib) == (("host-1", "host-2"), 256, 128, 512)
    assert (share.pool_mib, share.remote_lent_mib) == (2048, 64)


def test_what_a_fenced_host_said_last_is_over(rack) -> None:
    database, reader, _ = rack
    say(database, "host-1", fenced_at=1.0)
    share = reader.shares.share(CONSUMER)
    assert (share.remote_mib, share.disk_mib, share.swap_mib, share.remote_lent_mib) == (None, None, 0, 64)


def test_a_disk_share_that_one_host_does_not_say_is_unknown(rack) -> None:
    database, reader, _ = rack
    say(database, "host-2", borrowed={"shares": [{**sample_rack.SHARES[0], "disk_mib": None}]})
    share = reader.shares.share(CONSUMER)
    assert (share.remote_mib, share.disk_mib) == (256, None)


def test_what_is_aside_is_lent_no_more_and_its_loan_shows_it(rack) -> None:
    _, reader, ledger = rack
    lender = Lender("host-1", LIFE, LenderKind.ACTIVE, sample_rack.BUFFER_MIB)
    ledger.buffers.delegate(lender, 2, {index: index * 64 for index in range(8) if index != 1})
    [loan] = reader.loans.loans(host="host-2", guaranteed=True)
    assert (loan.lent_mib, loan.state) == (64, "online")
    assert [(run.start, run.count, run.state) for run in loan.buffers] == [(0, 1, "online"), (1, 1, "quarantined")]
    assert reader.shares.share(loan.consumer_uuid).remote_lent_mib == 64
    assert reader.host("host-2").guaranteed_mib == 64
