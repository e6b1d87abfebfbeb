"""How a receiver of a former release answers a call that it does not know."""

import oslo_messaging


def does_not_know(error: BaseException) -> bool:
    """Return whether the receiver is of a former release; over a bus the error comes by its name only."""
    if isinstance(error, oslo_messaging.RemoteError):
        return bool(error.exc_type == "UnsupportedVersion")
    return isinstance(error, oslo_messaging.UnsupportedVersion)
