"""What may come of asking the host's data plane."""

from pondstack.domain.errors import Conflict, Unavailable


class DataPlaneGone(Unavailable):
    """No data plane runs: guests wait for the next one, and no lease is used."""


class DataPlaneSilent(Unavailable):
    """The data plane is there and gives no answer: frozen, overloaded, or another program."""


class DataPlaneRefused(Conflict):
    """The data plane does not do it, and says why."""


class AttachDenied(DataPlaneRefused):
    """The host would deny the data plane a guest's process; the text names by what, and what to do."""
