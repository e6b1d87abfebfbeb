"""What the clients of all nouns share: the microversion's header, JSON, expected statuses."""

from typing import Any
from urllib.parse import urlencode

from oslo_serialization import jsonutils
from tempest.lib.common import rest_client

HEADER = "OpenStack-API-Version"


class MemoryClient(rest_client.RestClient):
    """A client of the API. `microversion`: X.Y or latest; None sends no header, which means the oldest one."""

    microversion: str | None = None

    def get_headers(self, accept_type: str | None = None, send_type: str | None = None) -> dict[str, str]:
        """Return the headers of a request, the microversion's included."""
        headers: dict[str, str] = super().get_headers(accept_type, send_type)
        if self.microversion is not None:
            headers[HEADER] = f"{self.service} {self.microversion}"
        return headers

    def read(self, path: str, status: int = 200, **query: Any) -> rest_client.ResponseBody:
        """GET a path."""
        address = f"{path}?{urlencode(query)}" if query else path
        return self._told(status, *self.get(address))

    def change(self, method: str, path: str, status: int = 200, /, **body: Any) -> rest_client.ResponseBody:
        """POST or PUT a path with a JSON body."""
        return self._told(status, *self.request(method, path, body=jsonutils.dumps(body)))

    def remove(self, path: str) -> None:
        """DELETE a path."""
        response, _ = self.delete(path)
        self.expected_success(204, response.status)

    def _told(self, status: int, response: Any, body: Any) -> rest_client.ResponseBody:
        self.expected_success(status, response.status)
        return rest_client.ResponseBody(response, jsonutils.loads(body))
