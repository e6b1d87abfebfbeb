"""What guests have not touched yet, from a folder that looks like /proc."""

from pathlib import Path

from pondstack_agent.lending.guests import growth_mib


def process(proc: Path, pid: int, words: list[str], resident_kib: int, huge_kib: int = 0) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_text("\0".join(words) + "\0")
    (folder / "status").write_text(
        f"Name:\tqemu\nUid:\t0\t0\t0\t0\nVmRSS:\t{resident_kib} kB\nHugetlbPages:\t{huge_kib} kB\n"
    )


def test_what_guests_may_still_take(tmp_path) -> None:
    qemu = ["qemu-system-x86_64", "-machine", "q35", "-m"]
    process(tmp_path, 1, [*qemu, "1024", "-uuid", "a"], 256 * 1024)
    process(tmp_path, 2, [*qemu, "512", "-uuid", "b"], 100 * 1024, 512 * 1024)  # all on huge pages
    process(tmp_path, 3, ["sleep", "9"], 1)
    process(tmp_path, 4, ["sleep", "9", "-uuid", "c"], 1)  # says that it is a guest, and says no size
    (tmp_path / "5").mkdir()  # ends at this moment
    assert growth_mib(tmp_path) == 768
