"""Client of hosts."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class HostsClient(MemoryClient):
    """Hosts, and what an operator does with them."""

    def list_hosts(self, **query: Any) -> Any:
        """List them: `limit`, `marker`."""
        return self.read("/hosts", **query)

    def show_host(self, name: str) -> Any:
        """Show one."""
        return self.read(f"/hosts/{name}")

    def update_host(self, name: str, **body: Any) -> Any:
        """Enable or disable one: `enabled`, `generation`, `disabled_reason`."""
        return self.change("PUT", f"/hosts/{name}", **body)

    def fence_host(self, name: str, **body: Any) -> Any:
        """Take the pool memory from a dead one: `reason`, `force`, `generation`."""
        return self.change("POST", f"/hosts/{name}/fence", **body)

    def unfence_host(self, name: str) -> Any:
        """Let a fenced one take part again."""
        return self.change("POST", f"/hosts/{name}/unfence")

    def delegate_host(self, name: str, **body: Any) -> Any:
        """Have one lend memory: `mib`, `kind`, `operation_id`."""
        return self.change("POST", f"/hosts/{name}/delegate", 202, **body)

    def reclaim_host(self, name: str, **body: Any) -> Any:
        """Have one take back what it lends: `mib`, `seconds`, `operation_id`."""
        return self.change("POST", f"/hosts/{name}/reclaim", 202, **body)

    def suspend_host(self, name: str, **body: Any) -> Any:
        """Put an empty one to sleep: `driver`, `mib`, `operation_id`."""
        return self.change("POST", f"/hosts/{name}/suspend", 202, **body)

    def wake_host(self, name: str, **body: Any) -> Any:
        """Wake one: `operation_id`."""
        return self.change("POST", f"/hosts/{name}/wake", 202, **body)

    def drain_host(self, name: str, **body: Any) -> Any:
        """Move all servers of one away: `operation_id`; returns the plan."""
        return self.change("POST", f"/hosts/{name}/drain", 202, **body)

    def restore_host(self, name: str, **body: Any) -> Any:
        """Enable one that was drained: `operation_id`; returns the plan."""
        return self.change("POST", f"/hosts/{name}/restore", 202, **body)

    def set_host_slices(self, name: str, **body: Any) -> Any:
        """Have one hold slices for itself: `purpose`, `count`, `pool_uuid`, `generation`."""
        return self.change("PUT", f"/hosts/{name}/slices", 202, **body)

    def set_host_tiering(self, name: str, **body: Any) -> Any:
        """Switch tiering of one: `on`, `generation`."""
        return self.change("PUT", f"/hosts/{name}/tiering", **body)

    def delete_host(self, name: str) -> None:
        """Remove one."""
        self.remove(f"/hosts/{name}")
