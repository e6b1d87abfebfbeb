"""Health check: one of the brokers of transport_url lets us in, so that the controller can be asked."""

import ssl
from typing import Any

import kombu
import oslo_messaging
from kombu import exceptions as kombu_exceptions
from oslo_log import log
from oslo_messaging import opts as messaging_opts
from oslo_middleware.healthcheck import pluginbase
from oslo_utils import strutils

LOG = log.getLogger(__name__)

# Drivers without a server to reach.
LOCAL = frozenset({"fake", "kombu+memory"})
RABBIT = "oslo_messaging_rabbit"
FILES = {"ssl_ca_file": "ca_certs", "ssl_cert_file": "certfile", "ssl_key_file": "keyfile"}
"""Options of the group [oslo_messaging_rabbit], which the URL's query may have, too; and their names for kombu."""


def tls_options(conf: Any, url: Any, server: str | None) -> dict[str, Any] | bool:
    """Return how kombu connects to a broker, as oslo.messaging does: with an authority, one of that name only."""
    # The bus registers them, too, at the first call of a controller.
    conf.register_opts(dict(messaging_opts.list_opts())[RABBIT], group=RABBIT)

    def option(name: str) -> Any:
        return url.query.get(name) or conf[RABBIT][name]

    if not strutils.bool_from_string(option("ssl")):
        return False
    found: dict[str, Any] = {word: option(name) for name, word in FILES.items() if option(name)}
    if "ca_certs" in found:
        found |= {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": server}
    return found or True


class Broker(pluginbase.HealthcheckBaseExtension):
    """Unhealthy when no host of transport_url answers a login within [api] health_timeout_seconds."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result; `server_port` is oslo.middleware's."""
        del server_port
        url = oslo_messaging.TransportURL.parse(self.oslo_conf)
        if url.transport in LOCAL:
            return pluginbase.HealthcheckResult(available=True, reason="broker: OK")
        # Who asks has shown no token, so the reason names no address; the log does.
        failures: list[str] = []
        for host in url.hosts or [oslo_messaging.TransportHost(hostname="localhost")]:
            failure = self._login(url, host)
            if failure is None:
                return pluginbase.HealthcheckResult(available=True, reason="broker: OK")
            failures.append(failure)
            LOG.warning("Broker %s:%s does not answer: %s", host.hostname, host.port or 5672, failure)
        reason = f"broker: not reachable ({', '.join(failures)}); look at transport_url"
        return pluginbase.HealthcheckResult(available=False, reason=reason)

    def _login(self, url: Any, host: Any) -> str | None:
        timeout = self.oslo_conf.api.health_timeout_seconds
        connection = kombu.Connection(
            transport="pyamqp",
            hostname=host.hostname,
            port=host.port,
            userid=host.username,
            password=host.password,
            virtual_host=url.virtual_host or "/",
            ssl=tls_options(self.oslo_conf, url, host.hostname),
            connect_timeout=timeout,
            transport_options={"read_timeout": timeout, "write_timeout": timeout},
        )
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=timeout)
        except (*connection.connection_errors, *connection.channel_errors, kombu_exceptions.OperationalError) as error:
            return type(error.__cause__ or error).__name__
        finally:
            connection.release()
        return None
