"""Entry point of `python -m pondstack_rack`."""

import sys

from pondstack_rack.cli import main

sys.exit(main())
