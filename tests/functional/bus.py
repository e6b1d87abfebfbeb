"""The in-memory bus of oslo.messaging, delivering at once; its own listeners look for messages 20 times a second."""

import threading
from typing import Any
from unittest import mock
from weakref import WeakSet

import fixtures
from oslo_messaging._drivers import base, impl_fake
from oslo_utils import timeutils

LOOK_SECONDS = 5.0
"""A listener looks so often all the same: nothing but a message or its own end has to wake it."""


class PromptBus(fixtures.Fixture):
    """Has each message wake the listeners of its topic, for the time of a test.

    With their own looks each of a test's twenty listeners wakes for nothing, and each call waits for one of them.
    """

    def _setUp(self) -> None:
        self._listeners: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()
        begin, deliver, stop = (
            impl_fake.FakeListener.__init__,
            impl_fake.FakeExchange.deliver_message,
            impl_fake.FakeListener.stop,
        )

        def listen(listener: Any, *args: Any, **kwargs: Any) -> None:
            begin(listener, *args, **kwargs)
            listener.woken = threading.Event()
            with self._lock:
                self._listeners.add(listener)

        def delivered(exchange: Any, topic: str, *args: Any, **kwargs: Any) -> None:
            deliver(exchange, topic, *args, **kwargs)
            with self._lock:
                waiting = list(self._listeners)
            for listener in waiting:
                if any(target.topic == topic for target in listener._targets):
                    listener.woken.set()

        def stopped(listener: Any) -> None:
            stop(listener)
            listener.woken.set()

        for owner, name, method in (
            (impl_fake.FakeListener, "__init__", listen),
            (impl_fake.FakeListener, "poll", base.batch_poll_helper(_poll)),
            (impl_fake.FakeListener, "stop", stopped),
            (impl_fake.FakeExchange, "deliver_message", delivered),
        ):
            patcher = mock.patch.object(owner, name, method)
            patcher.start()
            self.addCleanup(patcher.stop)


def _poll(listener: Any, timeout: float | None = None) -> Any:
    """Return the next message, None when there was none for so long, or the listener was stopped."""
    deadline = timeutils.StopWatch(timeout)
    deadline.start()
    while not listener._stopped.is_set():
        # Before the look: what is delivered from here on is found by it, or wakes the wait.
        listener.woken.clear()
        for target in listener._targets:
            exchange = listener._exchange_manager.get_exchange(target.exchange)
            context, message, replies, requeue = exchange.poll(target, listener._pool)
            if message is not None:
                return impl_fake.FakeIncomingMessage(context, message, replies, requeue)
        left = deadline.leftover(return_none=True)
        if left is not None and left <= 0:
            return None
        listener.woken.wait(LOOK_SECONDS if left is None else min(left, LOOK_SECONDS))
    return None
