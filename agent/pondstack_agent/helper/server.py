"""What a helper answers: a verb with its arguments per connection, to processes of its own user and of root."""

import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pondstack.domain.errors import BadRequest, PondError, Unavailable
from pondstack_agent.helper import messages
from pondstack_agent.helper.program import Program
from pondstack_agent.helper.unix_socket import trusted

LOG = logging.getLogger(__name__)

_TALK_SECONDS = 10.0
"""So long a client that says nothing is waited for."""

Verb = Callable[..., dict[str, Any]]


class RequestHandler:
    """Answers requests by verbs; whatever goes wrong with one of them, the helper lives on."""

    def __init__(self, program: Program, verbs: Mapping[str, Verb]) -> None:
        self._title, self._verbs = program.title, verbs

    def talk(self, link: socket.socket) -> None:
        """Receive one request, and answer it."""
        with suppress(OSError, ValueError):  # it has gone, or talks nonsense; its own side tells why
            if trusted(link):
                request = messages.receive(link, _TALK_SECONDS)
                messages.send(link, self._answer(request), _TALK_SECONDS)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.pop("verb", "")
        verb = self._verbs.get(name) if isinstance(name, str) else None
        try:
            if verb is None:
                raise TypeError(f"no verb {name!r}")
            return verb(**request)
        except PondError as error:
            return messages.failure(error)
        except TypeError as error:
            text = f"the {self._title} does not understand its agent ({error}); are they of one version?"
            return messages.failure(BadRequest(text))
        except Exception as error:
            LOG.exception("The verb %s failed", name)
            return messages.failure(Unavailable(f"the {self._title} could not do it: {error!r}; see its log"))
