"""What a comparison found: its code, its severity, and the action that mends it."""

from dataclasses import dataclass
from enum import StrEnum

from pondstack.controller.reconcile.actions import Action


class Severity(StrEnum):
    """`info` is no fault: something under way or as configured."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement. `host`: its evidence is that host's report, which is asked for afresh before we act."""

    code: str
    severity: Severity
    subject: str
    detail: str
    action: Action | None = None
    host: str | None = None
    operator: bool = False
    """The action is applied only when an operator asks for a repair."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two findings the same one."""
        return self.code, self.subject
