"""No process of ours imports eventlet, where it is installed, too."""

import subprocess
import sys

PROGRAM = """
import sys
from pondstack import native_threads
native_threads.use()
import futurist
from oslo_service import backend
print("eventlet" in sys.modules, backend.get_backend_type().value)
import eventlet
"""


def test_eventlet_is_refused_and_threads_are_native() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "threading"]
    assert "ModuleNotFoundError: No module named 'eventlet' (pondstack runs without it)" in done.stderr
