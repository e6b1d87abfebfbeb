"""One YAML file per noun in gabbits/, against the whole pipeline over a real ledger in SQLite."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from gabbi import driver, fixture

from pondstack_api.routes import ROUTES
from tests.fixtures import sample_jobs, sample_plans, sample_rack
from tests.fixtures.api import ApiFixture

GABBITS = Path(__file__).parent / "gabbits"
test_pytest = driver.test_pytest
current = []


class Rack(fixture.GabbiFixture):
    """gabbi's fixture: each file has an application and a rack of its own, whose UUIDs are in the environment."""

    def start_fixture(self):
        """Make it."""
        self.folder = Path(tempfile.mkdtemp(prefix="pondstack-gabbi-"))
        rack = ApiFixture(self.folder)
        current.append(rack)
        os.environ.update(
            {
                "POOL": sample_rack.POOL,
                "BLUE": sample_rack.BLUE,
                "GREEN": sample_rack.GREEN,
                "LIFE": sample_rack.INCARNATIONS["host-1"],
                "RECLAIM": sample_rack.RECLAIM,
                "LOAN": sample_rack.LOAN,
                "PLAN": sample_plans.PROPOSED,
                "JOB_WAITING": sample_jobs.WAITING,
                "JOB_ENDED": sample_jobs.ENDED,
                **{f"CONSUMER_{number}": uuid for number, uuid in enumerate(sample_rack.CONSUMERS)},
                **{f"ALLOCATION_{number}": uuid for number, uuid in enumerate(rack.allocations)},
            }
        )

    def stop_fixture(self):
        """Remove it."""
        current.pop().close()
        shutil.rmtree(self.folder)


def application():
    """Return an application that is the one of the file that runs then: gabbi asks when it collects."""
    return lambda environ, start_response: current[-1].application(environ, start_response)


def pytest_generate_tests(metafunc):
    driver.py_test_generator(
        str(GABBITS),
        test_loader_name="pondstack",
        intercept=application,
        fixture_module=sys.modules[__name__],
        metafunc=metafunc,
    )


def test_every_noun_has_a_file():
    nouns = {path.split("/")[1] for path in ROUTES if path not in {"/", "/openapi.json"}} | {
        "root",
        "slices",
        "buffers",
    }
    assert nouns <= {path.stem for path in GABBITS.glob("*.yaml")}
