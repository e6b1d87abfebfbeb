"""Nova's databases and cells in one process: five runs of nova-manage would import Nova five times.

Run as `OS_NOVA_DISABLE_EVENTLET_PATCHING=true python -m pondstack_rack.services.nova_schema NOVA_CONF`.
"""

import sys

from nova.cmd import manage  # first: it decides on the threading model

# isort: split
from nova import config, objects


def main(argv: list[str]) -> int:
    """Sync the API database, map cell0, sync it and the main database, and map the one cell."""
    config.parse_args(["nova-manage", "--config-file", argv[1]])
    objects.register_all()
    cells = manage.CellV2Commands()
    done = manage.ApiDbCommands().sync() or cells.map_cell0() or manage.DbCommands().sync()
    # 2: the cell is mapped already.
    return int(done or 0) or int(cells.create_cell(name="cell1") in (1,))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
