"""What tests may do to the cloud's processes: the command of [pondstack] service_command."""

import shlex
import subprocess
from collections.abc import Sequence

COMPUTE = "nova-compute"
AGENT = "pondstack-agent"
CONTROLLER = "pondstack-controller"


class ServiceCommandFailed(Exception):
    """The command did not do what it was asked for; the text has what it printed."""


class Services:
    """Kills and starts services by a command: `COMMAND VERB SERVICE HOST`."""

    def __init__(self, command: str, timeout_seconds: float) -> None:
        self._command: Sequence[str] = shlex.split(command)
        self._timeout_seconds = timeout_seconds

    def kill(self, service: str, host: str) -> None:
        """End a service at once."""
        self._run("kill", service, host)

    def start(self, service: str, host: str) -> None:
        """Start a service; returns once it serves."""
        self._run("start", service, host)

    def _run(self, verb: str, service: str, host: str) -> None:
        words = [*self._command, verb, service, host]
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                timeout=self._timeout_seconds,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServiceCommandFailed(f"{shlex.join(words)}: {error}") from error
        if done.returncode:
            told = (done.stderr or done.stdout).strip()[-2000:]
            raise ServiceCommandFailed(f"{shlex.join(words)} exited with {done.returncode}: {told}")
