"""Client of loans."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class LoansClient(MemoryClient):
    """What instances have borrowed."""

    def list_loans(self, **query: Any) -> Any:
        """List them: `limit`, `marker`, `consumer_uuid`, `project_id`, `guaranteed`, `host`, `lender`."""
        return self.read("/loans", **query)

    def show_loan(self, uuid: str) -> Any:
        """Show one."""
        return self.read(f"/loans/{uuid}")
