"""What several handlers ask of an instance: whose it is, and whether its split was corrected."""

from dataclasses import dataclass

from pondstack.domain.errors import NotFound
from pondstack_api.request import Request


@dataclass(frozen=True, slots=True)
class KnownInstance:
    """An instance of which a split or a history is known. `project_id` None: Nova has not told of it."""

    consumer_uuid: str
    project_id: str | None
    split_source: str | None
    corrected_at: float | None


def known_instance(request: Request, rule: str) -> KnownInstance:
    """Return the instance of the path; raises NotFound for one that is not known, or that `rule` does not allow."""
    consumer = request.args["consumer"].lower()
    unknown = NotFound(f"nothing is known of an instance {consumer}: Nova has not told of it, or it ended long ago")
    found = _by_split(request, consumer) or _by_history(request, consumer)
    if found is None or not request.context.can(rule, {"project_id": found.project_id or ""}):
        raise unknown
    return found


def _by_split(request: Request, consumer: str) -> KnownInstance | None:
    try:
        split = request.services.reader.split(consumer)
    except NotFound:
        return None
    return KnownInstance(consumer, split.project_id, split.source, split.corrected_at)


def _by_history(request: Request, consumer: str) -> KnownInstance | None:
    try:
        project = request.services.reader.history.lifetime(consumer).project_id
    except NotFound:
        return None
    return KnownInstance(consumer, project, None, None)
