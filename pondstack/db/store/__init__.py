"""The ledger's store in SQL (pondstack.ledger.store): one module of functions for each kind of row."""

from pondstack.db.store import (
    allocations,
    buffers,
    escrow,
    holdings,
    host_sleeps,
    hosts,
    journal,
    lends,
    mitigations,
    plans,
    pools,
    slices,
    splits,
)
from pondstack.db.store.leadership import check_epoch
from pondstack.ledger.store import Store

SQL = Store(
    allocations=allocations,
    buffers=buffers,
    check_epoch=check_epoch,
    escrow=escrow,
    holdings=holdings,
    host_sleeps=host_sleeps,
    hosts=hosts,
    journal=journal,
    lends=lends,
    mitigations=mitigations,
    plans=plans,
    pools=pools,
    slices=slices,
    splits=splits,
)
