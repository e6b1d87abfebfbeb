"""By what each kind of action is carried out."""

from collections.abc import Mapping

from pondstack.clients.nova import Nova
from pondstack.consolidation.applier.actions import Disable, Enable, Handler, Migrate, Stays
from pondstack.consolidation.applier.lends import Delegate, Lends
from pondstack.consolidation.applier.sleeps import Sleeps, Suspend, Wake
from pondstack.domain.plan import ActionKind


def handlers(nova: Nova, sleeps: Sleeps, lends: Lends, least_awake: int, stays: Stays) -> Mapping[ActionKind, Handler]:
    """Return what is done for each kind of action."""
    return {
        ActionKind.WAKE: Wake(sleeps),
        ActionKind.ENABLE: Enable(nova),
        ActionKind.DISABLE: Disable(nova, least_awake),
        ActionKind.MIGRATE: Migrate(nova, stays),
        ActionKind.DELEGATE: Delegate(lends),
        ActionKind.SUSPEND: Suspend(sleeps),
    }
