"""A thin client of the REST API: one keystoneauth adapter, every page of a list, errors that a person can act on."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from keystoneauth1 import adapter, discover
from osc_lib import exceptions

from pondstack.domain.printable import escaped

Document = dict[str, Any]


class ApiError(exceptions.CommandError):
    """The service refused; `code` is the stable one of the documentation's list of errors."""

    def __init__(self, status: int, code: str, detail: str, request_id: str) -> None:
        super().__init__(escaped(f"{detail} (HTTP {status}, {code}, request {request_id or 'unknown'})"))
        self.status = status
        self.code = code
        self.detail = detail


class MemoryClient:
    """Calls to the memory service of one cloud. Paths are relative to its endpoint."""

    def __init__(
        self, session: Any, *, region_name: str | None = None, interface: str | None = None, version: str = "1.0"
    ) -> None:
        self._version = version
        self._adapter = adapter.Adapter(
            session,
            service_type="memory",
            region_name=region_name,
            interface=interface,
            default_microversion=version,
            raise_exc=False,
        )

    def knows(self, since: str) -> bool:
        """Return whether the microversion that it asks for has what came with `since`."""
        asked, needed = (discover.normalize_version_number(version) for version in (self._version, since))
        return bool(asked >= needed)

    def get(self, *path: str, **query: Any) -> Document:
        """Read one object."""
        return self._call("GET", path, params=_given(query))

    def put(self, *path: str, body: Document) -> Document:
        """Change one object."""
        return self._call("PUT", path, json=body)

    def post(self, *path: str, body: Document) -> Document:
        """Have something done."""
        return self._call("POST", path, json=body)

    def delete(self, *path: str) -> None:
        """Remove one object."""
        self._send("DELETE", path)

    def list(
        self, *path: str, limit: int | None = None, collection: str | None = None, **query: Any
    ) -> Iterator[Document]:
        """Read a list, page after page, at most `limit` objects; `collection` None: as the last part of the path."""
        params = _given({**query, "limit": limit})
        left = limit
        while True:
            page = self._call("GET", path, params=params)
            for item in page[collection or path[-1]]:
                yield item
                left = left - 1 if left is not None else None
            following = [link["href"] for link in page.get("links", ()) if link["rel"] == "next"]
            if not following or left == 0:
                return
            params = dict(parse_qsl(urlsplit(following[0]).query))
            if left is not None:
                params["limit"] = str(left)

    def _call(self, method: str, path: tuple[str, ...], **arguments: Any) -> Document:
        document: Document = self._send(method, path, **arguments).json()
        return document

    def _send(self, method: str, path: tuple[str, ...], **arguments: Any) -> Any:
        url = "/" + "/".join(quote(part, safe="") for part in path)
        response = self._adapter.request(url, method, **arguments)
        if response.status_code >= 400:
            raise _error(response)
        return response


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _error(response: Any) -> ApiError:
    """Return the error of an answer; one without our document comes from a proxy or a wrong endpoint."""
    try:
        error = response.json()["errors"][0]
        code, detail = error["code"], error["detail"]
    except (ValueError, KeyError, IndexError, TypeError):
        code = "not from pondstack"
        detail = f"unexpected answer of {response.url}: is this the endpoint of the memory service?"
    request_id = response.headers.get("x-openstack-request-id", "")
    return ApiError(response.status_code, code, detail, request_id)
