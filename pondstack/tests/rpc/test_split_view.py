"""A view is asked for by what the scheduler knows; controllers and schedulers of the former release go on."""

from types import SimpleNamespace

import oslo_messaging
import pytest

from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.former import does_not_know
from pondstack.rpc.wire import SplitView

VIEW = SplitView(3, 7, predictor={"kind": "static", "percent": 15}, predictor_version="v")


class Bus:
    """A client whose controller speaks up to `version`; `refusal` is how it says that it does not."""

    def __init__(self, version, refusal=None):
        self._version, self._refusal = version, refusal
        self.asked = []

    def prepare(self, *, timeout, version):
        return SimpleNamespace(call=lambda _context, _method, **arguments: self._answer(version, timeout, arguments))

    def _answer(self, version, _timeout, arguments):
        if tuple(map(int, version.split("."))) > self._version:
            raise self._refusal
        self.asked.append(arguments)
        return VIEW.to_wire()


def ask(bus):
    controller = ControllerAPI(SimpleNamespace(client=lambda _target: bus))
    return controller.split_view(epoch=3, version=5, now=False, timeout_seconds=1, predictor="v")


def test_a_controller_is_told_which_predictor_is_known():
    bus = Bus((1, 13))
    assert ask(bus) == VIEW
    assert bus.asked == [{"epoch": 3, "version": 5, "now": False, "predictor": "v"}]


@pytest.mark.parametrize(
    "refusal", [oslo_messaging.RemoteError("UnsupportedVersion", "1.13"), oslo_messaging.UnsupportedVersion("1.13")]
)
def test_one_of_the_former_release_is_asked_as_it_was(refusal):
    bus = Bus((1, 10), refusal)
    assert ask(bus).predictor == VIEW.predictor
    assert bus.asked == [{"epoch": 3, "version": 5, "now": False}]


def test_another_error_is_no_sign_of_a_former_release():
    with pytest.raises(oslo_messaging.RemoteError):
        ask(Bus((1, 12), oslo_messaging.RemoteError("KeyError", "x")))
    assert not does_not_know(KeyError("x"))
