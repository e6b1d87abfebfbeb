"""What SELinux denies: asked of a policy that is played, and compiled where the module of the wheel is built."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pondstack_agent.data_plane.denials import HostFacts, ProcessFacts, guest_denials
from pondstack_agent.data_plane.selinux import FOLDER, NEEDED, Access, SelinuxPolicy, ask

MODULE = Path(__file__).parents[3] / "etc" / "selinux"
PLANE = "system_u:system_r:unconfined_service_t:s0"
GUEST = "system_u:system_r:svirt_t:s0:c12,c34"
CLASSES = {"process": ("2", {"ptrace": "14"}), "fd": ("9", {"use": "1"})}
CLASSES |= {"anon_inode": ("97", {"create": "3", "ioctl": "1"}), "unix_stream_socket": ("26", {"connectto": "23"})}
ALL = 0xFFFFFFFF


class Host:
    """A host with SELinux. `allowed`: permissions by source's and target's type and class; the rest has all."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / FOLDER
        self.allowed: dict[tuple[str, str, str], int] = {}
        self.flags, self.asked = 0, []
        self.enforce("1")
        for name, (index, permissions) in CLASSES.items():
            for permission, bit in permissions.items():
                self._write(f"class/{name}/perms/{permission}", bit)
            self._write(f"class/{name}/index", f"{index}\0")

    def enforce(self, value: str) -> None:
        self._write("enforce", value)

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def query(self, file: Path, question: str) -> str:
        assert file == self.folder / "access"
        source, target, index = question.split()
        self.asked.append(question)
        [name] = [name for name, (number, _) in CLASSES.items() if number == index]
        allowed = self.allowed.get((source.split(":")[2], target.split(":")[2], name), ALL)
        return f"{allowed:x} ffffffff 0 ffffffff 7 {self.flags:x}"

    def denied(self) -> list[str]:
        return SelinuxPolicy(self.root, self.query).denied(PLANE, GUEST)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_nothing_is_denied_that_the_policy_allows(host: Host) -> None:
    assert host.denied() == []
    assert len(host.asked) == len(NEEDED)
    assert host.asked[0] == f"{PLANE} {GUEST} 2"


def test_each_denial_is_named_as_the_kernel_names_it(host: Host) -> None:
    host.allowed["unconfined_service_t", "svirt_t", "process"] = ALL & ~(1 << 13)
    assert host.denied() == [f"denied {{ ptrace }} scontext={PLANE} tcontext={GUEST} tclass=process"]
    host.allowed = {
        ("svirt_t", "svirt_t", "anon_inode"): 0,
        ("svirt_t", "unconfined_service_t", "unix_stream_socket"): 0,
    }
    assert host.denied() == [
        f"denied {{ create }} scontext={GUEST} tcontext={GUEST} tclass=anon_inode",
        f"denied {{ connectto }} scontext={GUEST} tcontext={PLANE} tclass=unix_stream_socket",
    ]


def test_where_nothing_is_enforced_nothing_is_denied(host: Host) -> None:
    host.allowed["unconfined_service_t", "svirt_t", "process"] = 0
    host.flags = 1
    assert host.denied() == [], "the domain is permissive"
    host.flags = 0
    assert SelinuxPolicy(host.root, host.query).denied(PLANE, "libvirt-6f1c (enforce)") == []
    host.enforce("0")
    assert host.denied() == []


def test_what_the_kernel_does_not_say_is_not_denied(host: Host) -> None:
    def silent(_file: Path, _question: str) -> str:
        raise PermissionError

    assert SelinuxPolicy(host.root, silent).denied(PLANE, GUEST) == []
    assert SelinuxPolicy(host.root, lambda _file, _question: "").denied(PLANE, GUEST) == []
    shutil.rmtree(host.folder / "class" / "anon_inode")
    host.allowed["svirt_t", "svirt_t", "anon_inode"] = 0
    assert host.denied() == [], "a policy of a kernel that had no such class"
    assert SelinuxPolicy(host.root / "nothing").denied(PLANE, GUEST) == []


def test_a_question_is_one_transaction(tmp_path: Path) -> None:
    file = tmp_path / "access"
    file.touch()
    assert ask(file, "a b 2") == "a b 2", "as a plain file answers: what was written over the same descriptor"


def test_the_preflight_names_it() -> None:
    facts = HostFacts(1, True, ProcessFacts(1, ~0, PLANE), None)
    (reason,) = guest_denials(facts, ProcessFacts(2, 0, GUEST), ["denied { ptrace } tclass=process"])
    assert reason.startswith("SELinux: avc: denied { ptrace } tclass=process: install the module")


@pytest.mark.parametrize("guest", ["svirt_t", "svirt_tcg_t"])
@pytest.mark.parametrize("need", NEEDED, ids=lambda need: f"{need.kind} {need.permission}")
def test_the_module_allows_what_is_asked_for(guest: str, need: Access) -> None:
    ours = "unconfined_service_t"
    source, target = (ours, guest) if need.by_plane else (guest, ours if need.of_plane else "self")
    rules = re.findall(r"^allow (.+?) (\{.+?\}|\S+?):(\w+) (.+?);", (MODULE / "pondstack.te").read_text(), re.MULTILINE)
    found = [rule for rule in rules if source in rule[0].split() and target in rule[1].split() and need.kind == rule[2]]
    assert any(need.permission in rule[3].split() for rule in found)


def test_the_module_compiles(tmp_path: Path) -> None:
    if shutil.which("checkmodule") is None or shutil.which("semodule_package") is None:
        pytest.skip("needs checkpolicy and semodule-utils of tools/packages.txt: run tools/setup.sh")
    compiled, package = tmp_path / "pondstack.mod", tmp_path / "pondstack.pp"
    for command in (
        ["checkmodule", "-M", "-m", "-o", compiled, MODULE / "pondstack.te"],
        ["semodule_package", "-o", package, "-m", compiled, "-f", MODULE / "pondstack.fc"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert b"pondstack_data_plane_t" in package.read_bytes()


def test_contexts_of_files_are_whole() -> None:
    lines = (MODULE / "pondstack.fc").read_text().splitlines()
    assert {line.split()[0] for line in lines} == {"/usr/bin/qemu-pondstack", "/var/lib/pondstack-data-plane(/.*)?"}
    assert all(re.fullmatch(r"system_u:object_r:\w+_t:s0", line.split()[-1]) for line in lines)
