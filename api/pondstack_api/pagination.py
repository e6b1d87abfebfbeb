"""Pages of a list: `limit` and `marker` in, a link to the next page out."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from pondstack_api.request import Reply, Request

Record = TypeVar("Record")


def limit_of(request: Request) -> int:
    """Return the page size that the request asked for, within [api] page_size_max."""
    options = request.services.conf.api
    return min(int(request.query.get("limit", options.page_size)), options.page_size_max)


def page(
    request: Request,
    collection: str,
    path: str,
    fetch: Callable[[int], Sequence[Record]],
    key: Callable[[Record], Any],
    render: Callable[[Record], dict[str, Any]],
) -> Reply:
    """Return one page of `collection`. `fetch` gets one more than fits, which tells whether there is a next page."""
    limit = limit_of(request)
    records = fetch(limit + 1)
    shown = records[:limit]
    body: dict[str, Any] = {collection: [render(record) for record in shown]}
    if len(records) > limit:
        query = urlencode({**request.query, "limit": limit, "marker": key(shown[-1])})
        body["links"] = [{"rel": "next", "href": f"{request.url}{path}?{query}"}]
    return Reply(body)
