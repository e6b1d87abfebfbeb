"""Requests that the OpenAPI document allows, and such that it forbids, drawn by schemathesis against the application.

The application runs in this process, over the sample rack in SQLite. A status that is not declared, a body or a type of
content that is not, a 500, a wrong request that is carried out: each is wrong.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from pondstack.domain.printable import PRINTABLE
from pondstack_api import microversion, openapi
from pondstack_api.routes import ROUTES
from tests.fixtures import sample_jobs, sample_plans, sample_rack
from tests.fixtures.api import URL, ApiFixture
from tests.fixtures.sample_models import RUNNING
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

CALLERS = {"admin": "admin:ops", "member": f"joe:{sample_rack.BLUE}"}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
VERSIONS = (*microversion.VERSIONS, "9.99", "latest.1", *["latest"] * 30)
"""Mostly the newest one, that all paths have; an older one answers in its own form."""


class ApiRequests(Target):
    """A step is one operation of the API with a few right requests, or a few wrong ones, each by every caller."""

    name = "REST API"

    def __init__(self, seed: int, examples: int = 3) -> None:
        super().__init__(seed)
        self._examples = examples
        # No file of the folder that we happen to be in is read, nor one of examples written.
        config = SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}})
        document = _unprintable(openapi.build(ROUTES, URL))
        self._schema = schemathesis.openapi.from_dict(document, config=config)
        self._operations = sorted(
            (found.ok() for found in self._schema.get_all_operations()), key=lambda item: item.label
        )
        self._turn = [(item, mode) for item in self._operations for mode in GenerationMode]
        self.dice.shuffle(self._turn)

    @property
    def all_steps(self) -> int:
        """How many steps try each operation in each way."""
        return len(self._turn)

    def attack(self) -> None:
        """Send a few requests of one operation to an application of their own."""
        operation, mode = self._turn[self.steps % self.all_steps]
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            api = ApiFixture(Path(folder))
            try:
                self._send(api, operation, mode)
            finally:
                api.close()

    def _send(self, api: ApiFixture, operation: Any, mode: GenerationMode) -> None:
        known = names(api)
        number = self.dice.getrandbits(32)
        dice = Random(number)

        @seed(number)
        @settings(
            max_examples=self._examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def requests(case: Case) -> None:
            named = dice.random() < 0.7
            if named:
                self._name(case, known, dice)
            # A wrong request whose path was wrong may be right now.
            checked = [*CHECKS, *([] if named else [checks.negative_data_rejection])]
            version = dice.choice(VERSIONS)
            for caller in CALLERS:
                self._one(api, case, caller, version, checked)

        try:
            requests()
        except Unsatisfiable:
            return  # nothing is wrong for an operation without parameters

    def _name(self, case: Case, known: Mapping[str, str], dice: Random) -> None:
        """Have what is in the path there, mostly: of a random name there is nothing but a 404."""
        for part in case.path_parameters or {}:
            if dice.random() < 0.9:
                case.path_parameters[part] = known.get(f"{case.path} {part}", known[part])

    def _one(self, api: ApiFixture, case: Case, caller: str, version: str, checked: list[Any]) -> None:
        headers = {"X-Auth-Token": CALLERS[caller], "OpenStack-API-Version": f"memory {version}"}
        response = case.call(app=api.application, headers=headers)
        self.note(ACCEPTED if response.status_code < 400 else REFUSED)
        try:
            case.validate_response(response, checks=checked)
        except FailureGroup as error:
            sent = f"{case.path_parameters} {case.query} {case.body!r:.300}"
            told = "; ".join(f"{type(each).__name__}: {each}"[:800] for each in error.exceptions)
            said = f"{response.status_code} {response.content[:300]!r}"
            self.fault(f"{caller}: {case.method} {case.path} {version} with {sent} is {said}: {told}")


def _unprintable(document: Any) -> Any:
    """Return the document with names of any characters: what draws by the class of all printable ones takes seconds.

    So right requests have names that are none, too, and are told that by a 400.
    """
    if isinstance(document, dict):
        return {key: _unprintable(item) for key, item in document.items() if (key, item) != ("pattern", PRINTABLE)}
    return [_unprintable(item) for item in document] if isinstance(document, list) else document


def names(api: ApiFixture) -> dict[str, str]:
    """Return what of the sample rack goes into each part of a path; "PATH PART" where it depends on the path."""
    return {
        "pool": "pool0",
        "index": "0",
        "name": "host-1",
        "host": "host-1",
        "uuid": api.allocations[0],
        "loan": sample_rack.LOAN,
        "consumer": sample_rack.CONSUMERS[0],
        "version": RUNNING,
        "project_id": sample_rack.BLUE,
        "plan": sample_plans.PROPOSED,
        "job": sample_jobs.ENDED,
        "/controllers/{name} name": "controller-1",
        "/hosts/{name}/fence name": "host-3",
        "/hosts/{name}/delegate name": "host-2",
        "/hosts/{name}/reclaim name": "host-3",
    }
