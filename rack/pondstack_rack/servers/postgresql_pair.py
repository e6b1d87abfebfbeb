"""Two PostgreSQL servers of our own: a primary, and a standby that confirms each commit before its client hears of it.

PostgreSQL promotes nobody by itself. Here the test is the arbiter: it knows that the old primary is dead, because it
killed it; an arbiter in production has to make sure of that by fencing.
"""

import os
import shutil
import signal
from pathlib import Path
from typing import Any, Self

from pondstack_rack import daemon
from pondstack_rack.servers.base import LOOPBACK, USER
from pondstack_rack.servers.postgresql import POSTGRESQL_BIN, PostgreSQLServer
from pondstack_rack.wait import wait_until

CATCH_UP_SECONDS = 60.0


def missing() -> str:
    """Return what keeps this machine from running a pair, "" when nothing does."""
    program = POSTGRESQL_BIN / "pg_basebackup"
    return "" if program.exists() else f"a PostgreSQL pair needs {program}: run tools/setup.sh"


class PostgreSQLMember(PostgreSQLServer):
    """One of the two; made and started by its pair."""

    def __init__(self, directory: Path, name: str, password: str) -> None:
        self.name = name
        directory.mkdir(parents=True, exist_ok=True)
        secret = directory / "password"
        secret.touch(mode=0o600)
        secret.write_text(password)
        super().__init__(directory)

    @property
    def is_standby(self) -> bool:
        """Whether its files are those of a standby."""
        return (self.data / "standby.signal").exists()

    def in_recovery(self) -> bool:
        """Ask the running server whether it is a standby."""
        return bool(self.execute("SELECT pg_is_in_recovery()")[0][0])

    def copy_of(self, primary: "PostgreSQLMember") -> None:
        """Throw its data away and become a standby of the running primary."""
        self.stop()
        self.directory.chmod(0o711)
        shutil.rmtree(self.data, ignore_errors=True)
        for path in (self.data, self.directory / "run"):
            path.mkdir(mode=0o700, exist_ok=True)
            shutil.chown(path, "postgres", "postgres")
        source = f"host={LOOPBACK} port={primary.port} user={USER} application_name={self.name}"
        words: list[str | Path] = ["-D", self.data, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        env = {**os.environ, "PGPASSWORD": primary._password}
        self._run([*self._as_postgres(), POSTGRESQL_BIN / "pg_basebackup", *words], cwd="/", env=env)
        (self.directory / "installed").touch()

    def set(self, option: str, value: str) -> None:
        """Change an option for good and now."""
        self.execute(f"ALTER SYSTEM SET {option} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def freeze(self) -> None:
        """SIGSTOP the server and all its processes: its connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT the server and all its processes."""
        self._signal(signal.SIGCONT)

    def _signal(self, what: int) -> None:
        process = self.daemon.process
        if process is not None:
            # The parent first: it starts no further process while its children are told.
            for member in (process, *process.children(recursive=True)):
                daemon.signal_process(member, what)


class PostgresPair:
    """A primary and its synchronous standby; after promote() a primary alone until rejoin(). Stopped by pid only."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o711)
        password = self.directory / "password"
        if not password.exists():
            password.touch(mode=0o600)
            password.write_text(os.urandom(12).hex())
        first, second = (PostgreSQLMember(self.directory / name, name, password.read_text()) for name in ("one", "two"))
        self.primary, self.standby = (second, first) if first.is_standby else (first, second)
        self.members = (first, second)

    @property
    def hosts(self) -> list[str]:
        """host:port of both, as [database] hosts wants it."""
        return [f"{LOOPBACK}:{member.port}" for member in self.members]

    def start(self) -> Self:
        """Start what does not run and wait until commits are confirmed by the standby; idempotent."""
        for member in self.members:
            member.thaw()
        self.primary.start()
        if not self.standby.is_standby:
            self.standby.copy_of(self.primary)
        self.standby.start()
        self.primary.set("synchronous_standby_names", f"ANY 1 ({self.standby.name})")
        if not wait_until(self.synchronous, CATCH_UP_SECONDS):
            raise daemon.DaemonFailed(f"postgresql: no synchronous standby; log: {self.standby.log_file}")
        return self

    def synchronous(self) -> bool:
        """Whether the primary waits for the standby at each commit, and the standby is there."""
        return bool(self.primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'quorum'"))

    def stop(self) -> None:
        """Shut both down in order, the primary last, so that no commit waits for a standby; idempotent."""
        for member in (self.standby, self.primary):
            member.thaw()
            if member is self.standby and self.primary.running:
                self.primary.set("synchronous_standby_names", "")
            member.stop()

    def kill_primary(self) -> None:
        """SIGKILL the primary with all its processes."""
        self.primary.kill()

    def kill_standby(self) -> None:
        """SIGKILL the standby: from now on each commit waits, without an error."""
        self.standby.kill()

    def promote(self) -> None:
        """Make the standby the primary; it is alone, so it waits for nobody. The old primary must be dead."""
        if self.primary.running:
            raise daemon.DaemonFailed("postgresql: the old primary lives: two primaries would take writes")
        self.standby.set("synchronous_standby_names", "")
        self.standby.execute("SELECT pg_promote(true, 60)")
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self) -> None:
        """Make the dead server a standby of the new primary, from a fresh copy, and wait for it at commits again."""
        self.standby.copy_of(self.primary)
        self.start()

    def execute(self, statement: str) -> list[Any]:
        """Run one statement as the administrator on the primary and return its rows."""
        return self.primary.execute(statement)

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a database on the primary, made when it is missing."""
        return self.primary.database_url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows, and the connections to it."""
        self.primary.drop_database(name)
