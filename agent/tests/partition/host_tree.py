"""A host as a tree of files, with a systemd that does what systemd does with them, now or later or not at all."""

from dataclasses import dataclass, field
from pathlib import Path

from pondstack_agent.partition.host import Host

LOCAL = "0-1"
SLICES = ("system.slice", "user.slice")
SYSTEM = (*SLICES, "init.scope")
DAEMONS = ("libvirtd.service", "virtqemud.service")
BOUND = "5588a000 bind:0 file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4\n7ffe0000 bind:0-1 stack N0=3\n"
UNBOUND = "5588a000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4\n"


@dataclass
class HostTree:
    """`late`: how many looks systemd takes to apply; `refuses`: the verb of systemctl that fails."""

    root: Path
    late: int = 0
    refuses: str = ""
    systemd: bool = True
    commands: list[tuple[str, ...]] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "sys/devices/system/node").mkdir(parents=True)
        (self.root / "sys/devices/system/node/has_cpu").write_text(f"{LOCAL}\n")
        (self.cgroups / "cgroup.subtree_control").parent.mkdir(parents=True)
        (self.cgroups / "cgroup.subtree_control").write_text("memory pids\n")
        for name in SYSTEM:
            (self.cgroups / name).mkdir()
        (self.root / "proc").mkdir()
        if self.systemd:
            (self.root / "run/systemd/system").mkdir(parents=True)

    @property
    def cgroups(self) -> Path:
        """The folder of the cgroups."""
        return self.root / "sys/fs/cgroup"

    @property
    def host(self) -> Host:
        """The host as the partition sees it."""
        return Host(
            root=self.root,
            write_cgroup=self._write,
            put_drop_in=self._put,
            remove_drop_in=self._remove,
            systemctl=self._systemctl,
            numa_maps=lambda pid: (self.root / "proc" / str(pid) / "numa_maps").read_text(),
            wait=self._wait,
        )

    def mems(self, name: str) -> str:
        """Return what a cgroup has, '' for nothing."""
        path = self.cgroups / name / "cpuset.mems"
        return path.read_text().strip() if path.exists() else ""

    def confine(self, name: str, nodes: str) -> None:
        """Set the nodes of a cgroup, as an operator does."""
        (self.cgroups / name / "cpuset.mems").write_text(f"{nodes}\n")

    def process(
        self, pid: int, words: str, *, allowed: str = "0-2", maps: str = UNBOUND, group: str = "/", threads: str = ""
    ) -> None:
        """Have a process run: its command line, the nodes of its cpuset, its policies, its cgroup.

        `threads`: the cgroup of its main thread below that; the kernel lists no processes of such a group.
        """
        folder = self.root / "proc" / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        (folder / "task" / str(pid) / "status").write_text(
            f"Name:\tx\nMems_allowed:\t7\nMems_allowed_list:\t{allowed}\n"
        )
        (folder / "status").write_text("Name:\tx\nUid:\t0\t0\t0\t0\n")
        (folder / "cmdline").write_bytes(words.replace(" ", "\0").encode() + b"\0")
        (folder / "comm").write_text(f"{words.split()[0]}\n")
        (folder / "numa_maps").write_text(maps)
        (folder / "cgroup").write_text(f"0::{group}{threads}\n")
        own = self.cgroups / group.lstrip("/")
        Path(f"{own}{threads}").mkdir(parents=True, exist_ok=True)
        with (own / "cgroup.procs").open("a") as procs:
            procs.write(f"{pid}\n")

    def guest(self, pid: int, consumer: str, **how: str) -> None:
        """Have a guest run."""
        self.process(pid, f"qemu-system-x86_64 -uuid {consumer}", **how)

    def files(self) -> set[str]:
        """Return what is in systemd's folders."""
        folders = (self.root / "etc", self.root / "run/systemd/system.control")
        return {str(path.relative_to(self.root)) for folder in folders for path in folder.rglob("*") if path.is_file()}

    def _write(self, path: str, text: str) -> str:
        Path(path).write_text(text)
        return ""

    def _put(self, path: str, text: str) -> str:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
        return ""

    def _remove(self, path: str) -> str:
        Path(path).unlink(missing_ok=True)
        return ""

    def _systemctl(self, *words: str) -> str:
        self.commands.append(words)
        if words[0] == self.refuses:
            return "Access denied"
        if words[0] == "set-property":
            _, _, unit, setting = words
            name, _, value = setting.partition("=")
            self._put(str(self.root / f"run/systemd/system.control/{unit}.d/50-{name}.conf"), setting)
            self.pending[unit] = value
            if not self.late:
                self._apply()
        return ""

    def _wait(self, _seconds: float) -> None:
        self.late -= 1
        if not self.late:
            self._apply()

    def _apply(self) -> None:
        for unit, value in self.pending.items():
            self.confine(unit, value)
        self.pending.clear()
