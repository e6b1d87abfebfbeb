"""Import this before Nova: native threads, no eventlet, as nova-scheduler runs in production."""

import os

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

from nova import monkey_patch

monkey_patch.patch()
