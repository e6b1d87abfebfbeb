"""Keeps a host's tiering policy: writes the kernel's settings, reads them back, puts back what was there before.

On disk, in the agent's state folder: `tiering/<setting>.json`, what the kernel had and what was written, there before
the first write and gone after the last. An agent that was killed therefore restores at its next end, or at its next
start when the setting is no longer asked for. A reboot restores everything by itself.
"""

import threading
from typing import Any, Self

from oslo_config import cfg
from oslo_log import log

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.records import Records
from pondstack_agent.tiering.kernel import Kernel
from pondstack_agent.tiering.nodes import NodeReader, Nodes
from pondstack_agent.tiering.policy import AUTO, AUTO_FILES, WEIGHTS, Policy, Setting

LOG = log.getLogger(__name__)

BOOT = "proc/sys/kernel/random/boot_id"


class Tiering:
    """The tiering settings of one host. Any thread may ask for a report; a failing setting stops nothing else."""

    def __init__(self, policy: Policy, kernel: Kernel, records: Records) -> None:
        self._configured = self._policy = policy
        self._kernel, self._records, self._reader = kernel, records, NodeReader(kernel)
        self._lock = threading.Lock()
        self._trouble: dict[str, str] = {}
        self._applied: set[str] = set()
        self._running = False

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, records: Records) -> Self:
        """Build it over this machine's kernel, from group [tiering]; raises ValueError."""
        return cls(Policy.from_conf(conf), Kernel(), records)

    def start(self) -> None:
        """Put back what a former life set and nobody asks for any more, then set what is asked for."""
        with self._lock:
            self._running = True
            wanted = {setting.name for setting in self._wanted(self._nodes())}
            self._restore(keep=wanted)
            self._apply()

    def switch(self, on: bool | None) -> None:
        """Follow the options with demotion and promotion on, or off, or (None) as they are."""
        with self._lock:
            before = {setting.name: setting.value for setting in self._wanted(self._nodes())}
            self._policy = self._configured.switched(on)
            if not self._running:
                return
            wanted = {setting.name: setting.value for setting in self._wanted(self._nodes())}
            for name in [name for name, value in before.items() if wanted.get(name) != value]:
                self._applied.discard(name)
                self._trouble.pop(name, None)
            self._restore(keep=set(wanted))
            self._apply()

    def refused(self, name: str) -> str:
        """Return why the kernel has not taken a setting, '' when it has, or was not asked to."""
        with self._lock:
            return self._trouble.get(name, "")

    def maintain(self) -> None:
        """Set what is new: the weights of nodes that came online since. What others changed meanwhile stays."""
        with self._lock:
            if self._running:
                self._apply()

    def stop(self) -> None:
        """Put back what was there before the agent; afterwards nothing is set any more. Idempotent."""
        with self._lock:
            self._running = False
            self._restore(keep=set())
            self._applied.clear()

    def report(self) -> dict[str, Any]:
        """Return what the kernel has now: {} when nothing is configured.

        `settings`: name to the kernel's text; `tiers`: memory tier to nodes; `trouble`: what is not as it should be.
        """
        if self._policy == Policy():
            return {}
        with self._lock:
            nodes = self._nodes()
            trouble, settings = dict(self._trouble), {}
            for setting in self._wanted(nodes):
                value = self._read(setting, trouble)
                if value is not None:
                    settings[setting.name] = value
                    if value != setting.value and setting.name in self._applied and setting.name not in trouble:
                        trouble[setting.name] = (
                            f"{setting.name} is {value} and was set to {setting.value}: somebody else changed it; "
                            "restart the agent to set it again"
                        )
            texts = [trouble[name] for name in sorted(trouble)]
            if self._policy.moves and nodes.trouble():
                texts.append(nodes.trouble())
            tiers = {str(tier): list(members) for tier, members in sorted(nodes.tiers.items())}
            return {"settings": settings, "tiers": tiers, "trouble": texts}

    def _nodes(self) -> Nodes:
        try:
            found = self._reader.look()
        except (DeviceFailed, ValueError) as error:
            self._trouble["nodes"] = f"the nodes of this host cannot be read: {error}"
            return Nodes((), (), {})
        self._trouble.pop("nodes", None)
        return found

    def _wanted(self, nodes: Nodes) -> list[Setting]:
        present = self._kernel.names(WEIGHTS)
        auto = next((name for name in AUTO_FILES if name in present), "")
        return list(self._policy.settings(nodes, auto))

    def _apply(self) -> None:
        for setting in self._wanted(self._nodes()):
            if setting.name not in self._applied:
                trouble = self._set(setting)
                if trouble and self._trouble.get(setting.name) != trouble:
                    LOG.warning("Tiering: %s", trouble)
                if trouble:
                    self._trouble[setting.name] = trouble
                else:
                    self._trouble.pop(setting.name, None)
                    self._applied.add(setting.name)

    def _set(self, setting: Setting) -> str:
        """Set one; return '' or what is wrong."""
        try:
            former = self._kernel.read(setting.path)
            if former is None:
                return f"this kernel has no /{setting.path}, which [tiering] asks for; leave that option out"
            self._remember(setting, former)
            if former != setting.value:
                answer = self._kernel.write(setting.path, setting.value)
                if answer != setting.value:
                    self._wrote(setting.name, answer)
                    return f"{setting.name} was set to {setting.value} and the kernel has {answer}"
                LOG.info("Tiering: %s is %s, it was %s", setting.name, answer, former)
        except DeviceFailed as error:
            return error.message
        return ""

    def _remember(self, setting: Setting, now: str) -> None:
        record = self._records.get(setting.name)
        boot = self._kernel.read(BOOT)
        if record is None or record["boot"] != boot:
            if now == setting.value:
                self._records.remove(setting.name)  # nothing to put back
                return
            self._records.put(setting.name, {"path": setting.path, "former": now, "written": [], "boot": boot})
        self._wrote(setting.name, setting.value)

    def _wrote(self, name: str, value: str) -> None:
        """Note a value as ours: what is neither that nor the former one is somebody else's."""
        record = self._records.get(name)
        if record is not None and value not in record["written"]:
            self._records.put(name, {**record, "written": [*record["written"], value]})

    def _restore(self, keep: set[str]) -> None:
        """Put back each setting on record that is not in `keep`. Automatic weights last: they set the others."""
        records = self._records.all()
        for name in sorted(records, key=lambda name: (name == AUTO, name)):
            if name not in keep:
                try:
                    self._restore_one(name, records[name])
                except DeviceFailed as error:
                    self._trouble[name] = f"{error.message}; it stays on record until it can be put back"
                    LOG.error("Tiering: %s", self._trouble[name])

    def _restore_one(self, name: str, record: dict[str, Any]) -> None:
        former = record["former"]
        now = self._kernel.read(record["path"]) if record["boot"] == self._kernel.read(BOOT) else None
        if now is not None and now != former:
            if now in record["written"]:
                answer = self._kernel.write(record["path"], former)
                if answer != former:
                    raise DeviceFailed(f"{name} was to be {former} again and the kernel has {answer}")
                LOG.info("Tiering: %s is %s again", name, former)
            else:
                LOG.warning("Tiering: %s stays %s, which somebody else set; it was %s before", name, now, former)
        self._records.remove(name)
        self._trouble.pop(name, None)

    def _read(self, setting: Setting, trouble: dict[str, str]) -> str | None:
        try:
            return self._kernel.read(setting.path)
        except DeviceFailed as error:
            trouble[setting.name] = error.message
            return None
