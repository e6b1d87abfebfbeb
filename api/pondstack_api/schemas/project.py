"""Schemas of what is set for projects."""

from pondstack_api.schemas import base

_POLICY: base.Schema = base.nullable(
    {
        "type": "string",
        "enum": ["none", "auto"],
        "description": "what its servers of flavors without pond: specs are treated as; none: all local, auto: as with "
        "pond:policy=auto, null: as aggregates and nova.conf say",
    }
)
_CAP: base.Schema = base.nullable(
    {
        "type": "integer",
        "minimum": 0,
        "maximum": 100,
        "description": "the largest pool share that is decided, in percent of a server's memory; 0: none, null: no cap",
    }
)
_SETTINGS = {"default_policy": _POLICY, "max_pool_percent": _CAP}

PROJECT = base.closed(
    {
        "project_id": base.described(base.NAME, "id of the project"),
        **_SETTINGS,
        "updated_at": base.nullable(base.described(base.TIME, "when it was changed last; null: nothing is set")),
    }
)
PROJECTS = base.page("projects", PROJECT)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the last project seen"))
CHANGES = {**base.closed(_SETTINGS, optional=tuple(_SETTINGS)), "minProperties": 1}
