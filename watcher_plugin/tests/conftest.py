"""A real Watcher beside the real API, whose controller is played: plans and hosts go on as a test says."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from uuid import NAMESPACE_OID, uuid5
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from sqlalchemy import update

from pondstack.db.models import HostRow
from pondstack.db.store import plans
from pondstack.domain.plan import Action, ActionState, Effect, PlanState
from tests.fixtures.api import ApiFixture

NODES = {name: str(uuid5(NAMESPACE_OID, f"node {name}")) for name in ("host-1", "host-2", "host-3")}
"""UUIDs of the compute nodes, which are those of the hosts' resource providers."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Cloud:
    """The memory service on a loopback port. `steps`: what happens after the next requests `method path-part`."""

    api: ApiFixture

    def __init__(self) -> None:
        self.steps: list[tuple[str, Callable[[], object]]] = []
        self.seen: list[str] = []
        self._changed = threading.Condition()
        self._server = make_server("127.0.0.1", 0, self._answer, server_class=_Server, handler_class=_Silent)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def open(self, folder: Path) -> None:
        """Begin anew, with a sample rack in a folder."""
        self.api, self.steps, self.seen = ApiFixture(folder), [], []
        for name, uuid in NODES.items():
            self._write(lambda session, name=name, uuid=uuid: session.execute(_provider(name, uuid)))

    def _write(self, work: Callable[[Any], object]) -> None:
        self.api.database.write(work)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Any:
        told = list(self.api.application(environ, start_response))
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        with self._changed:
            self.seen.append(request)
            if self.steps and self.steps[0][0] in request:
                self.steps.pop(0)[1]()
            self._changed.notify_all()
        return told

    def wait_for(self, request: str) -> None:
        """Wait until something was asked."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(request in item for item in self.seen), 60.0), self.seen

    def newest_plan(self) -> Any:
        """Return the plan that was made last, with its actions."""
        reader = self.api.reader.plans
        [made, *_] = reader.plans(limit=1)
        return reader.plan(made.uuid)

    def decide(self, *actions: Action, left_out: dict[str, str] | None = None, **effect: Any) -> None:
        """Have the newest plan decided."""
        plan = self.newest_plan()
        changed = replace(plan, state=PlanState.PROPOSED, effect=Effect(**effect), left_out=left_out or {})
        self._write(lambda session: plans.add_actions(session, plan.uuid, list(actions)))
        self._write(lambda session: plans.change(session, changed, decided=True, ended=False))

    def end_plan(self, state: PlanState = PlanState.DONE, reason: str = "", **changes: Any) -> None:
        """Have the newest plan end; where it is done all of its actions are."""
        plan = self.newest_plan()
        if state is PlanState.DONE:
            for action in plan.actions:
                done = replace(action, state=ActionState.DONE)
                self._write(lambda session, done=done: plans.change_action(session, plan.uuid, done, begun=False))
        changed = replace(plan, state=state, reason=reason, **changes)
        self._write(lambda session: plans.change(session, changed, decided=True, ended=True))

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60.0)


def _provider(name: str, uuid: str) -> Any:
    return update(HostRow).where(HostRow.name == name).values(provider_uuid=uuid)


class Watcher:
    """A Watcher process."""

    def __init__(self, folder: Path, url: str) -> None:
        script = Path(__file__).with_name("watcher_process.py")
        command = [sys.executable, "-W", "ignore", str(script), str(folder), url]
        self._errors = (folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._read()

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Ask for something; see watcher_process.Requests."""
        assert self._process.stdin is not None
        print(json.dumps([name, arguments]), file=self._process.stdin, flush=True)
        told: dict[str, Any] = self._read()
        assert "answer" in told, told["error"]
        return dict(told["answer"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            pytest.fail(f"Watcher has ended: {self._errors.read()[-3000:]}")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


@pytest.fixture(scope="module")
def service() -> Iterator[Cloud]:
    """The address of the memory service, the same for all tests of a module."""
    made = Cloud()
    yield made
    made.close()


@pytest.fixture
def cloud(service: Cloud, tmp_path: Path) -> Iterator[Cloud]:
    """The memory service over a sample rack of the test's own."""
    service.open(tmp_path)
    yield service
    service.api.close()


@pytest.fixture(scope="module")
def watcher(tmp_path_factory: pytest.TempPathFactory, service: Cloud) -> Iterator[Watcher]:
    """A Watcher whose user calls that memory service."""
    made = Watcher(tmp_path_factory.mktemp("watcher"), service.url)
    yield made
    made.close()


def node(name: str, **changes: Any) -> dict[str, Any]:
    """Return a compute node of Watcher's model."""
    return {"uuid": NODES[name], "hostname": name, **changes}
