"""GET / and GET /openapi.json: what this API is. No token is needed."""

from pondstack_api import microversion
from pondstack_api.request import Reply, Request


def versions(request: Request) -> Reply:
    """Show the versions (version discovery of keystoneauth)."""
    return Reply(
        {
            "versions": [
                {
                    "id": "v1.0",
                    "status": "CURRENT",
                    "min_version": microversion.MINIMUM,
                    "max_version": microversion.MAXIMUM,
                    "links": [{"rel": "self", "href": f"{request.url}/"}],
                }
            ]
        }
    )


def openapi(request: Request) -> Reply:
    """Show the API as an OpenAPI document, made from the same schemas that validate the requests."""
    return Reply(request.document())
