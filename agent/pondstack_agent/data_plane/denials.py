"""What would deny the data plane a guest's process, each with what to do: decided from facts, before it is tried.

The data plane attaches by ptrace, and has the process make its userfaultfd itself. AppArmor wants a rule at both ends,
but at none where the tracer is unconfined (Linux, security/apparmor/task.c: profile_tracee_perm). abstractions/base,
which libvirt's profile of a guest includes, has one for all tracers.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NO_ATTACH = 3
"""kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama.rst); up to 2 it asks for CAP_SYS_PTRACE only."""

PROFILE = "pondstack-data-plane"
_SYS_PTRACE, _SYS_ADMIN, _CHECKPOINT_RESTORE = 19, 21, 40  # linux/capability.h
_LABEL = re.compile(r"(?P<profile>\S+) \((?P<mode>enforce|kill)\)")
_GUESTS = "libvirt-"
_DENY = re.compile(r"^\s*(audit\s+)?deny\s+ptrace\b", re.MULTILINE)
_ALL_TRACERS = re.compile(r"^\s*ptrace\s*(\([^)]*\btracedby\b[^)]*\)\s*)?,", re.MULTILINE)

Denials = Callable[[int | None], list[str]]
"""Returns what denies the data plane a guest's process, by its number; None: any guest. [] when nothing is known to."""


def nothing_denied(_guest: int | None) -> list[str]:
    """Return [], as where nobody looks."""
    return []


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """Of /proc/PID. `capabilities`: bits, effective ones. `label`: attr/current, '' without AppArmor or SELinux.

    `tracer`: the process that traces it, 0 for none.
    """

    pid: int
    capabilities: int
    label: str
    tracer: int = 0

    def may(self, *capabilities: int) -> bool:
        """Tell whether it has one of these."""
        return any(self.capabilities >> capability & 1 for capability in capabilities)

    @property
    def profile(self) -> str:
        """The profile of AppArmor that is enforced on it, '' for none."""
        found = _LABEL.fullmatch(self.label)
        return found["profile"] if found else ""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Settings: `ptrace_scope` None without Yama. `plane`: the data plane's process, None while none is seen.

    `rules`: what AppArmor's rules for all guests of libvirt say, None where they cannot be read.
    """

    ptrace_scope: int | None
    unprivileged_userfaultfd: bool
    plane: ProcessFacts | None
    rules: str | None


def host_denials(host: HostFacts) -> list[str]:
    """Return what denies it each guest of this host."""
    reasons = [_scope(host), _capabilities(host.plane) if host.plane else ""]
    return [reason for reason in reasons if reason]


def guest_denials(host: HostFacts, guest: ProcessFacts, avc: Sequence[str] = ()) -> list[str]:
    """Return what denies it this guest's process. `avc`: what SELinux's policy does; see SelinuxPolicy.denied."""
    reasons = [_tracer(guest), _userfaultfd(host, guest), _profiles(host, guest), *map(_avc, avc)]
    return [*host_denials(host), *(reason for reason in reasons if reason)]


def _scope(host: HostFacts) -> str:
    if host.ptrace_scope is None or host.ptrace_scope < NO_ATTACH:
        return ""
    return (
        f"kernel.yama.ptrace_scope is {host.ptrace_scope}: nobody may attach to a process until the host restarts; set "
        "it to 2 or less in /etc/sysctl.d, and restart the host"
    )


def _capabilities(plane: ProcessFacts) -> str:
    lacking = [] if plane.may(_SYS_PTRACE) else ["CAP_SYS_PTRACE"]
    lacking += [] if plane.may(_CHECKPOINT_RESTORE, _SYS_ADMIN) else ["CAP_CHECKPOINT_RESTORE"]
    if not lacking:
        return ""
    return (
        f"the data plane, process {plane.pid}, has no {' and no '.join(lacking)}: have root run it, with the "
        "CapabilityBoundingSet of pondstack-data-plane.service"
    )


def _tracer(guest: ProcessFacts) -> str:
    return f"process {guest.pid} is traced by process {guest.tracer}: end that debugger" if guest.tracer else ""


def _userfaultfd(host: HostFacts, guest: ProcessFacts) -> str:
    # libvirt's profile has no such capability, whichever the process has.
    if host.unprivileged_userfaultfd or (guest.may(_SYS_PTRACE) and not guest.profile):
        return ""
    return (
        f"process {guest.pid} may not make a userfaultfd: set vm.unprivileged_userfaultfd = 1 in /etc/sysctl.d, and "
        "run `sysctl --system`"
    )


def _profiles(host: HostFacts, guest: ProcessFacts) -> str:
    own = host.plane.profile if host.plane else ""
    if not own:
        return ""  # whatever the guest's profile says: the kernel does not ask it then
    if not guest.profile.startswith(_GUESTS):
        return (
            f"AppArmor: the profile {own} lets the data plane attach to guests that libvirt confines, and process "
            f"{guest.pid} is {guest.label or 'unconfined'}: allow it in /etc/apparmor.d/local/{own}"
            if own == PROFILE
            else ""
        )
    if host.rules is None or _lets_trace(host.rules, own):
        return ""
    return (
        f"AppArmor: the profile {guest.profile} of process {guest.pid} does not let the data plane attach, whose "
        f"profile is {own}: install etc/apparmor/libvirt-qemu as the installation says, see what denies ptrace in "
        "/etc/apparmor.d/abstractions, and start the guest again"
    )


def _avc(denied: str) -> str:
    return (
        f"SELinux: avc: {denied}: install the module etc/selinux/pondstack.te as the installation says, or allow it in "
        "one of your own"
    )


def _lets_trace(rules: str, tracer: str) -> bool:
    """Tell whether rules let a profile trace; a rule that denies it counts before all others."""
    named = re.compile(rf"^\s*ptrace\b.*\bpeer={re.escape(tracer)}\b", re.MULTILINE)
    return not _DENY.search(rules) and bool(_ALL_TRACERS.search(rules) or named.search(rules))
