"""Tempest's results as they are read and told; Nova's configuration without us."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import subunit

from pondstack.domain.sizing import parse_specs
from pondstack_rack import config
from pondstack_rack.layout import Layout, RackError, Sizes
from pondstack_rack.tempest import compare, conf, results, run
from pondstack_rack.tempest.results import Comparison, Results


def _stream(*events: tuple[str, str, str]) -> bytes:
    """A stream as stestr writes it: test, status, and the reason of a skip."""
    out = io.BytesIO()
    stream = subunit.StreamResultToBytes(out)
    for test, status, reason in events:
        stream.status(test_id=test, test_status="inprogress")
        if reason:
            stream.status(
                test_id=test, file_name="reason", file_bytes=reason.encode(), mime_type="text/plain", eof=True
            )
        if status:
            stream.status(test_id=test, test_status=status)
    return out.getvalue()


def test_outcomes_and_reasons_are_read() -> None:
    found = results.parse(
        _stream(("a", "success", ""), ("b", "fail", ""), ("c", "skip", "no\n such  thing"), ("d", "uxsuccess", ""))
    )
    assert found.outcomes == {"a": "passed", "b": "failed", "c": "skipped", "d": "failed"}
    assert found.reasons == {"c": "no such thing"}


def test_a_test_that_began_and_never_ended_has_failed() -> None:
    assert results.parse(_stream(("a", "", ""))).outcomes == {"a": "failed"}


def test_an_empty_stream_has_no_test() -> None:
    assert results.parse(b"").outcomes == {}


def test_the_summary_ends_with_the_three_figures() -> None:
    found = Results({"a": "passed", "b": "failed", "c": "skipped"}, {"c": "no such thing"})
    assert found.summary() == ["FAILED   b", "skipped  c: no such thing", "1 passed, 1 failed, 1 skipped"]


def test_the_same_test_in_two_places_counts_twice() -> None:
    found = Results()
    found.add(Results({"a": "passed"}), "here")
    found.add(Results({"a": "skipped"}, {"a": "no such thing"}), "there")
    assert found.summary() == ["skipped  there: a: no such thing", "1 passed, 0 failed, 1 skipped"]


def test_exclusions_of_chosen_tests_count_as_skipped() -> None:
    found = Results({"t.servers.A.x": "passed"})
    excluded = "^t\\.servers\\.A\\.y  # no port\n^t\\.volumes\\.B\\.z  # no disk\n"
    found.leave_out("# why\n^t\\.servers\\.A\\.\n", excluded)
    assert found.outcomes == {"t.servers.A.x": "passed", "t.servers.A.y": "skipped"}
    assert found.reasons == {"t.servers.A.y": "no port"}


def test_each_exclusion_has_a_reason_and_is_of_a_pass() -> None:
    chosen = config.template("tempest-libvirt.txt") + config.template("tempest-fake.txt")
    lines = config.template("tempest-exclude.txt").splitlines()
    found = Results()
    found.leave_out(chosen, "\n".join(lines))
    assert len(found.outcomes) == len(lines)
    assert all(found.reasons.values())


PROGRAMS = {
    "tempest": r"""
import pathlib, re, sys
chosen = re.search(r"exclude-regex (\S+)", " ".join(sys.argv))
name = f"{pathlib.Path.cwd().name}.test"
if (pathlib.Path.cwd() / "broken").exists() and "--list-tests" not in sys.argv:
    sys.exit("no such module")
if not (chosen and re.match(chosen[1], name)):
    print(name) if "--list-tests" in sys.argv else pathlib.Path("runs").open("a").write("x")
""",
    "stestr": """
import pathlib, subunit, sys
name, runs = f"{pathlib.Path.cwd().name}.test", pathlib.Path("runs")
for _ in runs.read_text() if runs.exists() else "":  # no two runs have the same stream
    subunit.StreamResultToBytes(sys.stdout.buffer).status(test_id=name, test_status="success")
""",
}
"""Stand for both: a test in each pass, PASS.test, which an expression may leave out."""


@pytest.fixture
def two_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Passes named one and two; returns the folder of their workspaces."""
    for name, source in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{source}")
        (tmp_path / name).chmod(0o755)

    def workspace(_layout: object, _connection: object, one: conf.Pass, _flavors: str) -> Path:
        (tmp_path / one.name / ".stestr").mkdir(parents=True, exist_ok=True)
        return tmp_path / one.name

    passes = [conf.Pass(name, f"^{name}", libvirt=True) for name in ("one", "two")]
    monkeypatch.setattr(run, "program", lambda name: str(tmp_path / name))
    monkeypatch.setattr(conf, "workspace", workspace)
    monkeypatch.setattr(conf, "passes", lambda _layout: passes)
    return tmp_path


RACK: Any = SimpleNamespace(layout=SimpleNamespace(log="logs"), connection=lambda: None)


@pytest.mark.usefixtures("two_passes")
def test_a_pass_that_an_expression_leaves_out_says_so_and_is_no_failure() -> None:
    said: list[str] = []
    found = run.run(RACK, run.Choice(regex="one"), said.append)
    assert found.outcomes == {"one: one.test": "passed"}
    assert said[-2:] == ["tempest: two", "two: no test of it matches one"]
    assert len(run.run(RACK, run.Choice(), said.append).outcomes) == 2


@pytest.mark.usefixtures("two_passes")
def test_an_expression_that_leaves_all_out_is_a_failure() -> None:
    with pytest.raises(RackError, match="no test of one, two: none matches three"):
        run.run(RACK, run.Choice(regex="three"), print)


def test_a_pass_whose_tests_do_not_start_is_a_failure(two_passes: Path) -> None:
    (two_passes / "two").mkdir()
    (two_passes / "two" / "broken").touch()
    with pytest.raises(RackError, match="no test of two: see above"):
        run.run(RACK, run.Choice(regex="one|two"), print)


class Compute:
    """Stands for openstacksdk's compute proxy without flavors."""

    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self.specs: dict[str, dict[str, str]] = {}

    def find_flavor(self, _name: str) -> None:
        return None

    def create_flavor(self, *, name: str, ram: int, vcpus: int, disk: int, flavorid: str) -> SimpleNamespace:
        del vcpus, disk
        self.made[name] = ram
        return SimpleNamespace(id=flavorid)

    def create_flavor_extra_specs(self, flavor: SimpleNamespace, specs: dict[str, str]) -> None:
        self.specs[flavor.id] = specs


@pytest.mark.parametrize("flavors", conf.FLAVORS)
def test_flavors_of_stock_tests(flavors: str) -> None:
    """Both kinds leave as much local memory, and pool flavors are ones that nova-api takes."""
    compute = Compute()
    for name, sizes in conf.FLAVORS[flavors].items():
        assert conf._flavor(SimpleNamespace(compute=compute), name, *sizes) == name
    specs = {name: parse_specs(compute.specs.get(name, {})) for name in compute.made}
    local = [ram - (found.pool_mib if (found := specs[name]) else 0) for name, ram in compute.made.items()]
    assert local == [256, 320]
    assert all(found is not None for found in specs.values()) is (flavors == "pool")


def test_pool_flavors_are_for_stock_passes_without_a_comparison() -> None:
    rack: Any = SimpleNamespace(layout=Layout(Path("/rack"), Sizes(), "secret"))
    stock = [one.name for one in conf.passes(rack.layout) if one.stock]
    assert stock == ["stock-libvirt", "stock-fake"]
    with pytest.raises(RackError, match="there are: stock-libvirt, stock-fake"):
        run.run(rack, run.Choice(("pondstack",), flavors="pool"), print)
    with pytest.raises(RackError, match="compare with plain flavors"):
        compare.compare(rack, run.Choice(flavors="pool"), print)


def test_regressions_are_what_passes_without_us_only() -> None:
    without = Results({"a": "passed", "b": "passed", "c": "failed", "d": "passed", "e": "skipped"}, {"e": "no disk"})
    with_ours = Results({"a": "passed", "b": "failed", "c": "passed", "e": "skipped"}, {"e": "no disk"})
    found = Comparison(without, with_ours)
    assert not found.holds
    assert found.regressions() == ["b: passed without, failed with", "d: passed without, not run with"]
    assert found.summary() == [
        "FAILED   b",
        "skipped  e: no disk",
        "DIFFERS  b: passed without, failed with",
        "DIFFERS  c: failed without, passed with",
        "DIFFERS  d: passed without, not run with",
        "with pondstack in Nova: 2 passed, 1 failed, 1 skipped",
        "without: 3 passed, 1 failed, 1 skipped",
        "3 differences, 2 regressions",
    ]


def test_a_comparison_holds_when_nothing_fails_with_us() -> None:
    """What fails both ways is no regression, and is not as it should be."""
    assert Comparison(Results({"a": "failed"}), Results({"a": "passed"})).holds
    assert not Comparison(Results({"a": "failed"}), Results({"a": "failed"})).holds


def test_nova_without_us_has_nothing_of_ours() -> None:
    for name in ("nova.conf", "nova-compute.conf"):
        for driver in compare.STOCK_DRIVERS:
            text = config.template(name).replace("${compute_driver}", driver)
            found = compare.plain(text)
            assert "pondstack_nova" not in found
            assert "Pond" not in found
            assert "ComputeFilter" in found or name != "nova.conf"
    with pytest.raises(RackError, match="nothing of pondstack"):
        compare.plain("[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n")


def test_the_passes_are_what_the_rack_has_hosts_for(tmp_path) -> None:
    from pondstack_rack.layout import Layout, Sizes

    def names(hosts: int, fakes: int) -> list[str]:
        return [one.name for one in conf.passes(Layout(tmp_path, Sizes(hosts, fakes), "secret"))]

    assert names(2, 4) == ["pondstack", "stock-libvirt", "stock-fake"]
    assert names(0, 2) == ["pondstack", "stock-fake"]
    assert names(1, 0) == ["pondstack", "stock-libvirt"]


def test_servers_have_ports_on_fake_computes_only(tmp_path) -> None:
    """A libvirt host would have to wire them."""
    from pondstack_rack.layout import Layout, Sizes

    found = {one.name: one.networks for one in conf.passes(Layout(tmp_path, Sizes(2, 4), "secret"))}
    assert found == {"pondstack": False, "stock-libvirt": False, "stock-fake": True}
