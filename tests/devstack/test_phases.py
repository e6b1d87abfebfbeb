"""Each phase of the plugin, with stand-ins for DevStack: what it asks for, which files it leaves, when it refuses.

With DEVSTACK_DIR=<checkout of DevStack> the functions that write configuration files are DevStack's own.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from tests.devstack.harness import HERE, PLUGIN, PhaseFailed, Sandbox, Scenario, expected, story
from tests.devstack.mutants import Mutant, mutants, survives
from tests.devstack.scenarios import ALL, SCENARIOS

QEMU = Scenario("qemu", ALL, {"LIBVIRT_TYPE": "qemu"})


WEIGHERS = ",".join(
    [
        "pondstack_nova.weigher.all_weighers",
        "nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher",
        "nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher",
    ]
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_node_does_what_is_written_down(scenario: Scenario, tmp_path: Path) -> None:
    assert story(scenario, tmp_path) == expected(scenario).read_text(), (
        "if that is right: python -m tests.devstack --write"
    )


def test_the_defaults_are_those_written_down(tmp_path: Path) -> None:
    defaults = Sandbox(tmp_path, QEMU).run("settings")
    assert defaults == (HERE / "expected" / "settings").read_text()


def test_nova_conf_is_edited_after_the_one_edit_of_stack_sh_that_runs_in_the_background(tmp_path: Path) -> None:
    calls = Sandbox(tmp_path, QEMU).run("stack").splitlines()
    assert calls[calls.index("-- stack post-config") + 1] == "async_wait configure_neutron_nova"


@pytest.mark.parametrize(
    ("file", "option", "value"),
    [
        ("nova.conf", "enabled_filters", "PondFilter"),
        ("nova.conf", "available_filters", "nova.scheduler.filters.all_filters"),
        ("nova.conf", "available_filters", "pondstack_nova.filter.PondFilter"),
        (
            "nova.conf",
            "weight_classes",
            WEIGHERS,
        ),
        ("nova.conf", "transport_url", "rabbit"),
        ("nova-cpu.conf", "compute_driver", "pond.PondLibvirtDriver"),
        ("nova-cpu.conf", "transport_url", "rabbit"),
        ("nova-cpu.conf", "notification_format", "versioned"),
        ("nova-cpu.conf", "emulator", "@/usr/bin/qemu-pondstack"),
    ],
)
def test_an_option_that_got_lost_ends_stack_sh(file: str, option: str, value: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, QEMU)
    line = f"{option} = .*{value.removeprefix('@')}"
    with pytest.raises(PhaseFailed, match=rf"{file}: \[\w+\] {option} is '[^']*' and lacks {value}"):
        sandbox.run("stack", SPOIL=f"sed -i '\\|^{line}|d' $SANDBOX/etc/nova/{file}")


def test_a_filter_list_that_was_written_again_ends_stack_sh(tmp_path: Path) -> None:
    with pytest.raises(PhaseFailed, match="lacks PondFilter"):
        Sandbox(tmp_path, QEMU).run("stack", SPOIL="sed -i 's/,PondFilter$//' $SANDBOX/etc/nova/nova.conf")


def test_a_host_of_two_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PhaseFailed, match=r"libvirt calls this host node1\.example\.org and Nova calls it node1"):
        Sandbox(tmp_path, QEMU).run("stack", LIBVIRT_HOSTNAME="node1.example.org")


def test_an_api_that_does_not_answer_ends_stack_sh(tmp_path: Path) -> None:
    with pytest.raises(PhaseFailed, match="pond-api did not start"):
        Sandbox(tmp_path, QEMU).run("stack", API_DOWN="yes")


def test_a_pool_that_placement_does_not_offer_ends_stack_sh(tmp_path: Path) -> None:
    with pytest.raises(PhaseFailed, match="after 0 s no guest could get pool memory"):
        Sandbox(tmp_path, QEMU).run("stack", POOL_READY="no", POND_READY_SECONDS="0")


@pytest.mark.parametrize(
    ("verb", "message"), [("--help", "was not built"), ("ask", "after 0 s the data plane does not answer")]
)
def test_a_data_plane_that_does_not_run_ends_stack_sh(verb: str, message: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, SCENARIOS[1])
    (tmp_path / "bin/pondstack-data-plane").write_text(f'#!/bin/bash\n[[ "$1" != {verb} ]]\n')
    with pytest.raises(PhaseFailed, match=message):
        sandbox.run("stack", POND_READY_SECONDS="0")


def test_a_base_slice_that_does_not_come_online_ends_stack_sh(tmp_path: Path) -> None:
    with pytest.raises(PhaseFailed, match="after 0 s the base slice is not online"):
        Sandbox(tmp_path, SCENARIOS[2]).run("stack", BASE_ONLINE="0", POND_READY_SECONDS="0")


def test_no_base_slice_is_asked_for_where_none_is_wanted(tmp_path: Path) -> None:
    assert "--base-slices" not in Sandbox(tmp_path, SCENARIOS[2]).run("stack", POND_CXL_BASE_SLICES="0")


def test_stacking_again_gives_the_same_node(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, QEMU)
    first = sandbox.run("stack")
    files = {name: sandbox.file(name) for name in sandbox.files()}
    sandbox.run("unstack")
    for path in (tmp_path / "etc/pondstack").glob("*.conf"):
        path.write_text(path.read_text() + "[former]\noption = of the former stack\n")
    (tmp_path / "data/pondstack/node1").mkdir()
    (tmp_path / "data/pondstack/node1/attachment.json").write_text("of the former stack")
    again = sandbox.run("stack")
    assert not (tmp_path / "data/pondstack/node1").exists()
    assert {name: sandbox.file(name) for name in sandbox.files()} == files
    both = set(first.splitlines()) ^ set(again.splitlines())
    assert both == {"sudo umount @/data/pondstack-pool"}


def test_what_an_earlier_release_wrote_to_libvirt_is_removed(tmp_path: Path) -> None:
    """All guests of the node ran as root by it; now a guest on the emulated pool has a label of its own."""
    sandbox = Sandbox(tmp_path, QEMU)
    path = tmp_path / "etc/libvirt/qemu.conf"
    before = path.read_text()
    path.write_text(f'{before}# pondstack begin\nuser = "root"\nsecurity_driver = "none"\n# pondstack end\n')
    assert "restart_service libvirtd" in sandbox.run("stack")
    assert path.read_text() == before


@pytest.mark.parametrize("scenario", SCENARIOS[:2] + SCENARIOS[3:4], ids=lambda scenario: scenario.name)
def test_clean_leaves_nothing(scenario: Scenario, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, scenario)
    before = {name: sandbox.file(name) for name in sandbox.files()}
    sandbox.run("stack")
    sandbox.run("unstack")
    sandbox.run("clean")
    # Nova's and Tempest's own files are theirs to remove.
    left = {name: sandbox.file(name) for name in sandbox.files() if not name.startswith(("etc/nova/", "tempest/"))}
    assert left == {name: text for name, text in before.items() if not name.startswith("etc/nova/")}
    assert not list(tmp_path.glob("data/pondstack*"))
    assert not (tmp_path / "etc/pondstack").exists()


def test_files_with_passwords_are_not_for_everybody(tmp_path: Path) -> None:
    Sandbox(tmp_path, QEMU).run("stack")
    for name in ("pondstack.conf", "pondstack-agent-node1.conf"):
        assert (tmp_path / "etc/pondstack" / name).stat().st_mode & 0o777 == 0o640, name


def test_what_libvirt_starts_is_a_program(tmp_path: Path) -> None:
    Sandbox(tmp_path, QEMU).run("stack")
    for name in ("qemu-pondstack", "qemu-pondstack-tcg"):
        assert (tmp_path / "usr/bin" / name).stat().st_mode & 0o777 == 0o755, name


def test_tempest_gets_our_tests_once(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN / "devstack", plugin / "devstack")
    (plugin / "tempest_tests").mkdir()
    for before, after in (("0", "@plugin"), ("other", "other @plugin"), (f"a {plugin} b", "a @plugin b")):
        record = Sandbox(tmp_path / "node", QEMU, plugin).run("stack", TEMPEST_PLUGINS=before)
        assert f"tempest plugins: {after}\n" in record


def test_services_that_local_conf_names_are_all_there_are(tmp_path: Path) -> None:
    record = Sandbox(tmp_path, Scenario("own", f"{ALL},pond-controller1")).run("stack")
    assert "pond-api" not in record
    assert "run_process pond-controller1" in record


def test_unstack_after_a_stack_sh_that_never_came_so_far(tmp_path: Path) -> None:
    assert "stop_process pond-controller1" in Sandbox(tmp_path, QEMU).run("unstack")


@pytest.mark.parametrize("ours", [True, False])
def test_a_lender_that_outlived_its_agent_is_ended_and_nobody_else(ours: bool, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, QEMU)
    folder = tmp_path / "data/pondstack/node1/lender"
    folder.mkdir(parents=True)
    name = "pondstack-lender" if ours else "somebody-else"
    with subprocess.Popen(["bash", "-c", f"exec -a {name} sleep 60"], stdout=subprocess.PIPE) as lender:
        (folder / "lender.lock").write_text(f'{{"incarnation": "x", "pid": {lender.pid}}}')
        try:
            # The name is there once bash has become sleep.
            calls = _until_named(sandbox, lender.pid, name)
        finally:
            lender.kill()
    assert (f"sudo kill -KILL {lender.pid}" in calls) is ours


def _until_named(sandbox: Sandbox, pid: int, name: str) -> str:
    assert wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(name.encode()), 60.0)
    return sandbox.run("unstack")


def test_a_service_that_local_conf_disables_stays_off(tmp_path: Path) -> None:
    record = Sandbox(tmp_path, QEMU).run("stack", DISABLED_SERVICES="pond-controller2")
    assert "run_process pond-controller2" not in record
    assert "run_process pond-controller1" in record
    assert "ha = False" in Sandbox(tmp_path, QEMU).file("tempest/etc/tempest.conf")


def _wires() -> list[Mutant]:
    """Return the lines that hand something to DevStack and whose loss would be silent there."""
    words = ("iniset", "run_process", "async_wait", "setup_develop", "check_pond_nova", "create_service_user")
    return [mutant for mutant in mutants() if mutant.text.startswith(words)][::10]


@pytest.mark.parametrize("mutant", _wires(), ids=lambda mutant: f"{mutant.file}-{mutant.first + 1}")
def test_a_line_that_is_gone_is_noticed(mutant: Mutant) -> None:
    """A sample; `make devstack-check` takes every line."""
    assert not survives(mutant)
