"""Tells the controller what this host lends, as a whole: what it does not hear of is lent no more."""

from oslo_log import log

from pondstack.domain.errors import PondError, Unavailable
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.lending.model import Holding
from pondstack_agent.records import Records
from pondstack_agent.sequence import Sequence

LOG = log.getLogger(__name__)

_KEY = "lent"


class LendingReport:
    """Remembers on disk which incarnation the controller was told of, so that its loss is noticed and told."""

    def __init__(self, host: str, marks: Records, controller: ControllerAPI, sequence: Sequence) -> None:
        self._host, self._marks, self._controller, self._sequence = host, marks, controller, sequence

    def next(self) -> int:
        """Return the number of the next word, to be taken before the look that it tells of: a lower one is late."""
        return self._sequence.next()

    def note(self, incarnation: str) -> None:
        """Remember an incarnation before anything of it is lent."""
        if (self._marks.get(_KEY) or {}).get("incarnation", "") != incarnation:
            self._marks.put(_KEY, {"incarnation": incarnation})

    def lost(self, holding: Holding) -> str:
        """Return the incarnation whose memory is gone without our doing, '' when there is none."""
        noted = str((self._marks.get(_KEY) or {}).get("incarnation", ""))
        return noted if noted != holding.incarnation else ""

    def tell(self, sequence: int, holding: Holding) -> str:
        """Delegate all that is lent (GS_goto_zombie of Zombieland 4.3, when the kind is zombie).

        Returns why the controller refuses, '' when it does not; raises Unavailable when it has to be told again.
        """
        refused = ""
        try:
            self._controller.delegate(
                sequence=sequence,
                host=self._host,
                incarnation=holding.incarnation,
                kind=str(holding.kind),
                buffer_mib=holding.buffer_mib,
                buffers=holding.offered(),
            )
        except Unavailable:
            raise
        except PondError as error:
            LOG.warning("The controller refuses what this host lends: %s", error)
            refused = f"the controller refuses it: {error.message}"
        self.note(holding.incarnation)
        return refused

    def tell_loss(self, sequence: int, holding: Holding) -> None:
        """Tell of a lender that ended, if there is one; raises Unavailable when it has to be told again."""
        lost = self.lost(holding)
        if lost:
            LOG.warning("The memory that this host lent as incarnation %s is gone: its process has ended", lost)
            self.tell(sequence, holding)
