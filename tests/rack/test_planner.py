"""pondstack-planner reports on the running rack: its instances, deleted ones too, its hosts, what they left untouched.

Memory that guests of fake computes touch is SYNTHETIC; everything else is as the rack's services tell it.
"""

import json
import subprocess
from pathlib import Path
from uuid import uuid4

import polars
import pytest

from pondstack_rack.cloud_client import Cloud, read_openrc
from pondstack_rack.demo.predictions import traces
from pondstack_rack.demo.tenancy import MEMORY_MIB, Tenancy
from pondstack_rack.layout import program
from pondstack_rack.processes import environment
from pondstack_rack.rack import Rack

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]

UNTOUCHED_PERCENT = 80
SMALL = ["--seeds", "1,2", "--pool-sockets", "4", "--policies", "static,pond", "--resamples", "200"]


def planner(rack: Rack, *words: object) -> str:
    """Run the command as an administrator would, with openrc's variables."""
    variables = {name: value for name, value in read_openrc(rack.layout.root / "openrc").items() if name != "PATH"}
    command = [program("pondstack-planner"), *map(str, words)]
    done = subprocess.run(command, env=environment() | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_report_of_the_running_cloud_from_its_own_history(rack: Rack, tmp_path: Path) -> None:
    trace, answers, page, again = (tmp_path / name for name in ("rack.parquet", "rack.json", "rack.html", "again.html"))
    with traces(rack.layout) as play, Tenancy(rack.layout, f"planned-{uuid4().hex[:6]}") as project:
        play({project.project_id: UNTOUCHED_PERCENT})
        ended, alive = project.boot(2)
        label = project.untouched_mib(ended, MEMORY_MIB * UNTOUCHED_PERCENT // 100)
        project.end([ended])
        told = planner(rack, "import", "pondstack", "--window-days", 1, "--name", "my rack", "--output", trace)
        mine = polars.read_parquet(trace).filter(polars.col("group") == project.project_id)
        assert project.split(alive)["pool_mib"] > 0
    assert mine["memory_mib"].to_list() == [MEMORY_MIB] * 2
    assert mine["end_seconds"].null_count() == 1
    gone = mine.filter(polars.col("end_seconds").is_not_null())
    assert gone["untouched_percent"].item() == pytest.approx(100 * label / MEMORY_MIB, abs=0.1)
    hosts = len(Cloud.of_rack(rack.layout.root).nova.get("/os-hypervisors").json()["hypervisors"])
    assert f" of {hosts} hosts claimed now" in told

    planner(rack, "run", trace, *SMALL, "--json", answers, "--html", page)
    summary = planner(rack, "report", answers, "--html", again)
    assert "my rack" in summary
    assert "my rack" in again.read_text()
    assert not json.loads(answers.read_text())["answers"]["source"]["synthetic"]
