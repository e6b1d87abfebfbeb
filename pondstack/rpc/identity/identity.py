"""Who a party on the bus is: a role and the name of its host or service, as in `agent/compute1`."""

import re
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")


class Role(StrEnum):
    """What a party is to the others."""

    CONTROLLER = "controller"
    AGENT = "agent"
    COMPUTE = "compute"
    """nova-compute of a host, with our virt driver."""
    SCHEDULER = "scheduler"
    """nova-scheduler, with our filters and weighers."""
    API = "api"


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """A party. An agent and a nova-compute have the name of their host."""

    role: Role
    name: str

    def __str__(self) -> str:
        return f"{self.role}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Identity":
        """Return what `ROLE/NAME` says; raises BadRequest."""
        role, _, name = text.partition("/")
        if role not in set(Role):
            raise BadRequest(f"identity {text!r}: the role must be one of {', '.join(Role)}, as in agent/compute1")
        if not _NAME.match(name):
            raise BadRequest(
                f"identity {text!r}: after the role comes the name of a host or service, of up to 255 letters, digits, "
                "dots, hyphens and underscores"
            )
        return cls(Role(role), name)
