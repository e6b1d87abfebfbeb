"""What the channel into an emulated host does when the host is silent, or has ended."""

import socket

import pytest

from . import frames


def test_who_was_silent_once_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "AFTER_SILENCE_SECONDS", 0.05)
    near, far = socket.socketpair()
    client, host = frames.Client(frames.Frames(near.detach()), lambda: "its console"), frames.Frames(far.detach())
    for within in (0.01, None):
        with pytest.raises(TimeoutError, match="its console"):
            client.request("run", within=within)
    host.close()
    client.ended()


def test_a_host_that_has_ended_leaves_the_end_of_its_console() -> None:
    near, far = socket.socketpair()
    client, host = frames.Client(frames.Frames(near.detach()), lambda: "its console"), frames.Frames(far.detach())
    host.close()
    client.ended()
    with pytest.raises(frames.StreamClosed, match="its console"):
        client.request("run", within=None)
