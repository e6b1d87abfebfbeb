"""Who uses pool memory, from a copied /proc."""

from pathlib import Path

from pondstack_agent.host.memory_users import guests, pages_on_node


def process(proc: Path, pid: int, command: list[str], numa_maps: str) -> None:
    """Write one process."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in command) + b"\0")
    (folder / "numa_maps").write_text(numa_maps)


def test_guests_and_pages(tmp_path: Path) -> None:
    process(
        tmp_path, 10, ["qemu", "-uuid", "vm1", "-m", "1"], "7f00 bind:1 anon=300 N0=44 N1=256 kernelpagesize_kB=4\n"
    )
    process(tmp_path, 11, ["sh"], "7f00 default anon=3 N0=3 N11=5\n7f10 default anon=2 N1=2\n")
    process(tmp_path, 12, ["sleep"], "7f00 default anon=3 N11=5\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "13").mkdir()  # it ended meanwhile
    assert guests(tmp_path) == {"vm1": 10}
    assert pages_on_node(1, tmp_path) == {10: 256, 11: 2}
