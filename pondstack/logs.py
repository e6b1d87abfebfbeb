"""Logs of all processes: oslo.log, and a line for each message, whatever names it has in it."""

import logging

from oslo_config import cfg
from oslo_log import log

from pondstack.domain.printable import escaped


class OneLine(logging.Filter):
    """Escapes what is not printable in messages: a name with a line break would write lines of its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message; tracebacks keep their lines."""
        record.msg, record.args = escaped(record.getMessage()), None
        return True


def setup(conf: cfg.ConfigOpts, program: str) -> None:
    """Set up logging of a process by its configuration."""
    log.setup(conf, program)
    for handler in logging.getLogger().handlers:
        handler.addFilter(OneLine())
