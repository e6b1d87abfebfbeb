"""Schemas of what the API tells about itself."""

from pondstack_api.schemas import base

_VERSION = base.closed(
    {
        "id": base.described(base.TEXT, "major version"),
        "status": base.described(base.TEXT, "CURRENT"),
        "min_version": base.described(base.TEXT, "oldest microversion"),
        "max_version": base.described(base.TEXT, "newest microversion"),
        "links": base.LINKS,
    }
)
VERSIONS = base.closed({"versions": {"type": "array", "items": _VERSION, "description": "the major versions"}})
OPENAPI = {
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "properties": {
        "openapi": base.described(base.TEXT, "version of the format, 3.1.0"),
        "info": {"type": "object", "description": "title and microversion"},
        "paths": {"type": "object", "description": "every path and method"},
    },
}
