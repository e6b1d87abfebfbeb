"""The beats of the rack's guest image on its console: it goes on, and its pool memory has what it had written."""

from typing import Any

from pondstack_rack.services import image
from pondstack_rack.wait import wait_until

GUEST_SECONDS = 240.0


def beat(connection: Any, server: str, count: int) -> dict[str, Any]:
    """Wait for a beat with at least this number and return it."""
    found: list[dict[str, Any]] = []

    def beaten() -> bool:
        nonlocal found
        text = connection.compute.get_server_console_output(server)["output"] or ""
        found = [item for item in image.console_lines(text, "beat") if item["count"] >= count]
        return bool(found)

    assert wait_until(beaten, GUEST_SECONDS, 0.5), f"no beat {count} on the console of {server}"
    return found[-1]
