"""Client of what the API says about itself."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class RootClient(MemoryClient):
    """Versions and the OpenAPI document; neither needs a token."""

    def show_versions(self) -> Any:
        """Show the API's versions."""
        return self.read("/")

    def show_openapi(self) -> Any:
        """Show the API as an OpenAPI document."""
        return self.read("/openapi.json")

    def raw(self, method: str, path: str, headers: dict[str, str], body: str | None = None) -> tuple[Any, str]:
        """Send just these headers, the token of nobody included; return response and text, whatever the status."""
        address = self.base_url.rstrip("/") + path
        response, text = self.raw_request(address, method, headers=headers, body=body)
        return response, text if isinstance(text, str) else text.decode()
