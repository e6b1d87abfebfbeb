"""Entry point of `python -m pondstack.rack`."""

import sys

from pondstack.rack.cli import main

sys.exit(main())
