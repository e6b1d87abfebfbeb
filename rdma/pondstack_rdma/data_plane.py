"""The command pondstack-data-plane: a native program that lies in this package; its sources are in rdma/native."""

import os
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(__file__).with_name("pondstack-data-plane")


def main() -> NoReturn:
    """Become the program; ends with what to do where it was not built."""
    try:
        os.execv(PROGRAM, [PROGRAM.name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(
            f"{PROGRAM} cannot be run ({error.strerror}): it is built where gcc, libjansson-dev, libssl-dev, "
            "libibverbs-dev and librdmacm-dev are installed; install them, and install pondstack again"
        )
