"""Which kinds of actions can be carried out, and by what."""

from collections.abc import Mapping

from pondstack.clients.nova import Nova
from pondstack.consolidation.applier.actions import Disable, Enable, Handler, Migrate
from pondstack.consolidation.applier.sleeps import Sleeps, Suspend, Wake
from pondstack.domain.plan import ActionKind


def handlers(nova: Nova, sleeps: Sleeps, least_awake: int) -> Mapping[ActionKind, Handler]:
    """Return what is done for each kind of action that can be carried out."""
    return {
        ActionKind.WAKE: Wake(sleeps),
        ActionKind.ENABLE: Enable(nova),
        ActionKind.DISABLE: Disable(nova, least_awake),
        ActionKind.MIGRATE: Migrate(nova),
        ActionKind.SUSPEND: Suspend(sleeps),
    }
