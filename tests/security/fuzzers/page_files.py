"""The files of a page store, damaged: it gives the content that was written last, or none, and names the file."""

import json
import shutil
import tempfile
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_agent.helper.lock import pid_of
from pondstack_agent.pagestore.settings import FILE, StoreSettings
from pondstack_agent.pagestore.store import VERSIONS, PageStore
from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.shm import ShmTransport
from tests.security.fuzzers.mutations import spoilt, spoilt_json
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

SECONDS = 10.0
MIRROR, LOCK = "mirror", "store.lock"
WRITTEN = range(24)
"""Pages that have content; the others were never written."""


def content(page: int, version: int) -> bytes:
    """Return what is written: of each page and version another one."""
    return f"{page}.{version};".encode().ljust(64, b".") * (PAGE_BYTES // 64)


class PageFiles(Target):
    """A store of 1 MiB that was closed, damaged, and is opened again."""

    name = "page store files"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        root = Path(self.opened.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-")))
        self._live, self._honest = root / "live", root / "honest"
        self._live.mkdir()
        self._transport = ShmTransport(root)
        settings = StoreSettings("vm1", 1, str(self._live / MIRROR), "shm", {"folder": str(root)})
        settings.write(self._live)
        (self._live / LOCK).write_text(json.dumps({"pid": 4711}))
        store = PageStore(self._live, settings, self._transport)
        for version in (1, 2):
            store.pages.write_many({page: content(page, version) for page in WRITTEN})
            store.pages.flush(SECONDS)
        store.close(SECONDS)
        self._size = (self._live / MIRROR).stat().st_size
        shutil.copytree(self._live, self._honest)

    def attack(self) -> None:
        """Damage a file, then begin as its process does, and read all pages."""
        shutil.copytree(self._honest, self._live, dirs_exist_ok=True)
        name = self.dice.choice((FILE, VERSIONS, MIRROR, MIRROR, LOCK))
        file = self._live / name
        before = file.read_bytes()
        file.write_bytes(self._damaged(name, before))
        try:
            self._use()
        except PondError as error:
            self.note(REFUSED)
            if name in (FILE, LOCK) and str(file) not in error.message:
                self.fault(f"the error does not name {name}: {error.message}")
            return
        self.note(ACCEPTED)

    def _damaged(self, name: str, data: bytes) -> bytes:
        dice = self.dice
        if name in (FILE, LOCK):
            return spoilt_json(dice, data)
        if name == VERSIONS and dice.random() < 0.5:
            at = 8 * dice.choice(WRITTEN)
            number = dice.choice((0, 1, 3, 2**62, 2**63 - 1, 2**63, 2**64 - 1))
            return data[:at] + number.to_bytes(8, "little") + data[at + 8 :]
        if name == MIRROR and dice.random() < 0.5:
            # Where something is: the first block, the headers, the pages.
            used = PAGE_BYTES * 5 + 2 * len(WRITTEN) * PAGE_BYTES
            at = dice.randrange(min(used, len(data)))
            return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
        return spoilt(dice, data)[: 4 * self._size]

    def _use(self) -> None:
        pid = pid_of(self._live / LOCK)
        if pid < 2:
            self.fault(f"process {pid} would be killed")
        settings = StoreSettings.read(self._live)
        if (settings.mib, settings.mirror, settings.transport) != (1, str(self._live / MIRROR), "shm"):
            return  # of another store: nobody tells it from an honest one
        store = PageStore(self._live, settings, self._transport)
        try:
            self._read(store, 2)
            page = self.dice.choice(WRITTEN)
            store.pages.write(page, content(page, 3))
            store.pages.flush(SECONDS)
            if store.pages.read(page) != content(page, 3):
                self.fault(f"page {page} is not what was written a moment ago")
        finally:
            store.close(SECONDS)

    def _read(self, store: PageStore, version: int) -> None:
        """Check each page: its newest content, or an error; zeros only where nothing was written."""
        for page in range(store.settings.pages):
            try:
                found = store.pages.read(page)
            except PondError:
                continue
            wanted = content(page, version) if page in WRITTEN else bytes(PAGE_BYTES)
            if found != wanted:
                self.fault(f"page {page} is {found[:40]!r}")
