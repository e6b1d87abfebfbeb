"""Orders to the service as an operator's script gives them: asked again with the same operation until it answers."""

from typing import Any
from uuid import uuid4

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException

from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.layout import Layout
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until

MICROVERSION = "1.20"
ANSWER_SECONDS = 180.0
DECIDED_SECONDS = 240.0
REFUSED = 409


class Orders:
    """Of one rack. Each raises DaemonFailed where the service does not answer in time."""

    def __init__(self, layout: Layout) -> None:
        session = keystone.session(layout)
        self._memory = Adapter(
            session, "memory", region_name="RegionOne", default_microversion=MICROVERSION, raise_exc=False
        )

    def create(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Have a plan decided; returns it as it was decided."""
        plan = self._post("/plans", settings)
        last: dict[str, Any] = {}

        def decided() -> bool:
            nonlocal last
            last = self.get(f"/plans/{plan['uuid']}")
            return bool(last) and last["state"] != "deciding"

        if not wait_until(decided, DECIDED_SECONDS, 0.2):
            raise DaemonFailed(f"plan {plan['uuid']} is not decided after {DECIDED_SECONDS:.0f} s: {last}")
        return last

    def apply(self, uuid: str) -> None:
        """Have a plan carried out."""
        self._post(f"/plans/{uuid}/apply", {})

    def cancel(self, uuid: str) -> None:
        """Put an end to a plan; one that has ended meanwhile is no error."""
        self._post(f"/plans/{uuid}/cancel", {}, REFUSED)

    def wake(self, host: str) -> None:
        """Have a host wake."""
        self._post(f"/hosts/{host}/wake", {}, REFUSED)

    def get(self, path: str) -> dict[str, Any]:
        """Return what the service tells, {} while it does not."""
        try:
            answer = self._memory.get(path)
        except ClientException:
            return {}
        return dict(answer.json()) if answer.status_code < 400 else {}

    def _post(self, path: str, body: dict[str, Any], *harmless: int) -> dict[str, Any]:
        operation, told, answer = str(uuid4()), "", None

        def answered() -> bool:
            nonlocal told, answer
            try:
                answer = self._memory.post(path, json={**body, "operation_id": operation})
            except ClientException as error:
                told = str(error)
                return False
            told = f"{answer.status_code} {answer.text[:300]}"
            return bool(answer.status_code < 500)

        if not wait_until(answered, ANSWER_SECONDS, 0.5) or answer is None:
            raise DaemonFailed(f"{path} is not answered after {ANSWER_SECONDS:.0f} s: {told}")
        if answer.status_code >= 400 and answer.status_code not in harmless:
            raise DaemonFailed(f"{path} is refused: {told}")
        return dict(answer.json())
