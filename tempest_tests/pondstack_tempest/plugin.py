"""What Tempest loads: options, tests and service clients (entry point tempest.test_plugins)."""

from pathlib import Path
from typing import Any

from oslo_config import cfg
from tempest import config
from tempest.test_discover import plugins

from pondstack_tempest import config as own
from pondstack_tempest import services


class PondstackTempestPlugin(plugins.TempestPlugin):
    """The plugin."""

    def load_tests(self) -> tuple[str, str]:
        """Return the folder of the tests, and the one that their package lies in."""
        package = Path(__file__).resolve().parent
        return str(package), str(package.parent)

    def register_opts(self, conf: cfg.ConfigOpts) -> None:
        """Add our options to Tempest's."""
        conf.register_opt(own.SERVICE_AVAILABLE, group="service_available")
        conf.register_group(own.GROUP)
        conf.register_opts(own.OPTIONS, group=own.GROUP)

    def get_opt_lists(self) -> list[tuple[str, list[cfg.Opt]]]:
        """Return our options for the sample configuration."""
        return [("service_available", [own.SERVICE_AVAILABLE]), (own.GROUP.name, own.OPTIONS)]

    def get_service_clients(self) -> list[dict[str, Any]]:
        """Return the clients of the API: `os_admin.pondstack.PoolsClient()`."""
        parameters = config.service_client_config("pondstack")
        clients = {
            "name": "pondstack",
            "service_version": "pondstack",
            "module_path": "pondstack_tempest.services",
            "client_names": services.__all__,
        }
        return [{**clients, **parameters}]
