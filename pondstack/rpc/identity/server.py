"""Judges calls before an endpoint hears of them, and signs the answers: a dispatcher of oslo.messaging's servers."""

from typing import Any

import oslo_messaging
from oslo_log import log
from oslo_messaging.rpc.dispatcher import ExpectedException

from pondstack.domain.errors import PondError, Refused
from pondstack.rpc.identity.border import FAILURE, RESULT, Border
from pondstack.rpc.identity.caller import with_caller

LOG = log.getLogger(__name__)


class SignedDispatcher:
    """Stands before oslo.messaging's dispatcher of one server."""

    def __init__(self, dispatcher: Any, border: Border, target: Any) -> None:
        self._dispatcher = dispatcher
        self._border = border
        self._target = target

    def dispatch(self, incoming: Any) -> Any:
        """Answer a request; what is refused was not done."""
        seal = None
        try:
            seal = self._border.seal_of(incoming.ctxt)
            caller = self._border.admit(self._target.topic, self._target.server, incoming.message, seal)
        except PondError as error:
            self._border.note(error)
            if seal is None:
                return raise_expected(error)
            return self._border.answer(seal, {FAILURE: told(error)})
        incoming.ctxt = with_caller(incoming.ctxt, caller)
        if seal is None:
            return self._dispatcher.dispatch(incoming)
        return self._border.answer(seal, self._content(incoming))

    def _content(self, incoming: Any) -> dict[str, Any]:
        try:
            return {RESULT: self._dispatcher.dispatch(incoming)}
        except ExpectedException as expected:
            answer = expected.exc_info[1]
            if isinstance(answer, Refused):  # by a rule of the endpoint's own
                self._border.note(answer)
            return {FAILURE: told(answer)}
        except oslo_messaging.RPCDispatcherError as error:
            return {FAILURE: told(error)}
        except Exception as error:
            LOG.exception("An unknown error in %s", incoming.message.get("method"))
            return {FAILURE: told(error)}


def told(error: BaseException) -> dict[str, str]:
    """Return an error as a reply has it."""
    text = error.message if isinstance(error, PondError) else str(error)
    return {"kind": type(error).__name__, "message": text}


@oslo_messaging.expected_exceptions(PondError)  # type: ignore[untyped-decorator]
def raise_expected(error: PondError) -> Any:
    """Answer a call with an error of ours, unsigned: its sender has not signed either."""
    raise error
