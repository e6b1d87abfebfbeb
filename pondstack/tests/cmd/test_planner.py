"""`pondstack-planner import|run|report`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pondstack.cmd import planner, planner_options
from pondstack.domain.errors import BadRequest
from pondstack.planner import answers as answers_module
from pondstack.planner import backends
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace
from pondstack.planner.traces import plain
from pondstack.planner.traces.imported import Hosts, Options
from tests.fixtures.sample_answers import answers

CSV = "start_seconds,end_seconds,vcpus,memory_mib\n0,60,2,2048\n5,x,1,1024\n"


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Trace, Settings, dict[str, Any]]]:
    """What is given to the replay, which is none here."""
    given: list[tuple[Trace, Settings, dict[str, Any]]] = []

    def answer(trace: Trace, settings: Settings, **others: Any) -> Any:
        given.append((trace, settings, others))
        if settings.sockets == 1:
            raise ValueError("one socket has no room for the largest server")
        return answers(synthetic=trace.origin == "synthetic")

    monkeypatch.setattr(answers_module, "answer", answer)
    return given


def source(folder: Path) -> Path:
    """Return a trace of one server and one row that is none."""
    path = folder / "cloud.csv"
    path.write_text(CSV)
    return path


def test_an_import_says_what_it_dropped_and_writes_what_run_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replayed: list[Any]
) -> None:
    output = tmp_path / "cloud.parquet"
    assert planner.main(["import", "csv", str(source(tmp_path)), "--output", str(output), "--name", "mine"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"1 servers of 2 rows in 0.0 days: {output}",
        "  1 rows dropped: end_seconds is no number (first: row 3)",
    ]
    assert planner.main(["run", str(output)]) == 0
    trace, _, _ = replayed[0]
    assert (trace.name, trace.origin, trace.servers.height) == ("mine", "csv", 1)


def test_a_database_of_nova_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/cell.sqlite"
    begun = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    with sa.create_engine(url).begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE instances (uuid, project_id, vcpus, memory_mb, launched_at, terminated_at, deleted_at,"
            " deleted)"
        )
        connection.exec_driver_sql(
            "INSERT INTO instances VALUES ('a', 'blue', 2, 2048, ?, NULL, NULL, 0)", (f"{begun:%Y-%m-%d %H:%M:%S.%f}",)
        )
    output = tmp_path / "cell.parquet"
    assert planner.main(["import", "database", url, "--window-days", "2", "--output", str(output)]) == 0
    assert f"1 servers of 1 rows in 0.0 days: {output}\n" in capsys.readouterr().out
    assert plain.read_parquet(output, Options("")).trace.name == "database"


def test_a_run_writes_answers_and_page_and_a_report_makes_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replayed: list[Any]
) -> None:
    json, first, second = tmp_path / "a.json", tmp_path / "a.html", tmp_path / "b.html"
    words = ["run", str(source(tmp_path)), "--json", str(json), "--html", str(first), "--seeds", "3,4", "--jobs", "2"]
    assert planner.main(words) == 0
    shown = capsys.readouterr().out
    assert f"Made by: pondstack-planner {' '.join(words)}\n" in shown
    _, settings, others = replayed[0]
    assert (settings.seeds, others["jobs"]) == ((3, 4), 2)
    assert planner.main(["report", str(json), "--html", str(second)]) == 0
    assert capsys.readouterr().out == shown.replace(str(first), str(second)).replace(
        f"--html {second}", f"--html {first}"
    )
    assert first.read_text() == second.read_text()


def test_without_a_trace_the_generated_one_is_replayed_and_labelled(
    capsys: pytest.CaptureFixture[str], replayed: list[Any]
) -> None:
    assert planner.main(["run", "--servers", "300", "--days", "2", "--trace-seed", "7"]) == 0
    assert capsys.readouterr().out.startswith("SYNTHETIC")
    trace, _, _ = replayed[0]
    assert (trace.origin, trace.end_of_trace_seconds) == ("synthetic", 2 * 86_400)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "cloud.txt"], "cloud.txt: its name tells no format; give --format"),
        (["run", "gone.csv"], "No such file"),
        (["run", "--html", "no/such/folder.html"], "no/such is no folder"),
        (["import", "csv", "gone.csv", "--output", "no/such/file"], "no/such is no folder"),
        (["import", "database", "sqlite:////no/such.db", "--output", "x"], "/no/such.db: no such database"),
        (["import", "nova", "--window-days", "0", "--output", "x"], "--window-days is 0; it must be over 0"),
        (["import", "pondstack", "--os-cloud", "none-such", "--output", "x"], "cloud none-such: "),
        (["run", "--sockets", "1", "--servers", "50"], "one socket has no room"),
        (["run", "--policies", "magic", "--servers", "50"], "policies: magic is unknown"),
        (["report", "gone.json"], "No such file"),
    ],
)
@pytest.mark.usefixtures("replayed")
def test_what_is_wrong_is_said_and_ends_with_1(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert planner.main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith("pondstack-planner: ")
    assert said in error


def test_damaged_answers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], replayed: list[Any]) -> None:
    path = tmp_path / "a.json"
    assert planner.main(["run", str(source(tmp_path)), "--json", str(path)]) == 0
    assert replayed
    path.write_text(path.read_text().replace('"seeds"', '"seed"'))
    assert planner.main(["report", str(path)]) == 1
    assert "is damaged, or of another release" in capsys.readouterr().err


def test_every_setting_is_an_option_with_its_unit_and_source() -> None:
    shown = planner_options.parser()
    assert planner_options.settings(shown.parse_args(["run"]), None) == Settings()
    run = next(action for action in shown._actions if action.dest == "verb").choices["run"]  # type: ignore[index, union-attr]
    told = {action.dest: action.help for action in run._actions}
    for item in fields(Settings):
        assert item.metadata["source"].replace("%", "%%") in told[item.name]
    wanted = shown.parse_args(["run", "--pool-sockets", "8,16", "--vcpus-per-socket", "64", "--emc-price", "900.5"])
    changed = planner_options.settings(wanted, None)
    assert (changed.pool_sockets, changed.vcpus_per_socket, changed.emc_price) == ((8, 16), 64, 900.5)


def test_hosts_of_the_trace_are_the_cloud_unless_another_one_is_given() -> None:
    hosts = Hosts(number=10, vcpus=960, memory_mib=10 * 512 * 1024)
    found = planner_options.settings(planner_options.parser().parse_args(["run"]), hosts)
    assert (found.sockets, found.vcpus_per_socket, found.dram_gib_per_socket) == (20, 48, 256.0)
    other = planner_options.parser().parse_args(["run", "--sockets", "6"])
    assert planner_options.settings(other, hosts).sockets == 6


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadRequest, match="static_percent is 200"):
        planner_options.settings(planner_options.parser().parse_args(["run", "--static-percent", "200"]), None)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(planner, "PACKAGES", ("polars", "no_such_package"))
    assert planner.main(["run"]) == 1
    assert "no_such_package is not installed: pip install 'pondstack[planner]'" in capsys.readouterr().err


def test_a_cluster_runs_the_parts_as_joblib_is_configured(
    monkeypatch: pytest.MonkeyPatch, replayed: list[Any], tmp_path: Path
) -> None:
    """Without one, nothing of it is imported or asked."""
    asked: list[str] = []

    @contextmanager
    def connected(address: str) -> Iterator[None]:
        asked.append(address)
        yield

    monkeypatch.setattr(backends, "connected", connected)
    words = ["run", str(source(tmp_path))]
    assert planner.main(words) == 0
    assert not asked
    assert planner.main([*words, "--cluster", "dask://head:8786"]) == 0
    assert (asked, replayed[1][2]["jobs"]) == (["dask://head:8786"], None)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("head:8786", "head:8786 is no address of a cluster; give dask://HOST:PORT"),
        ("ray://head:1", "pip install 'ray[cli"),
    ],
)
def test_a_cluster_that_cannot_be_had_ends_before_the_trace_is_read(
    address: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], replayed: list[Any]
) -> None:
    monkeypatch.setattr("pondstack.planner.backends.connection.find_spec", lambda _: None)
    assert planner.main(["run", "gone.csv", "--cluster", address]) == 1
    assert said in capsys.readouterr().err
    assert not replayed


def test_processes_of_this_machine_are_not_those_of_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        planner.main(["run", "--jobs", "2", "--cluster", "ray://head:1"])
    assert "not allowed with argument --jobs" in capsys.readouterr().err
