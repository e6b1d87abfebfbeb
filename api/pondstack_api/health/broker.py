"""Health check: one of the brokers of transport_url lets us in, so that the controller can be asked."""

from typing import Any

import kombu
import oslo_messaging
from kombu import exceptions as kombu_exceptions
from oslo_log import log
from oslo_middleware.healthcheck import pluginbase

LOG = log.getLogger(__name__)

# Drivers without a server to reach.
LOCAL = frozenset({"fake", "kombu+memory"})


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
            failure = self._login(host, url.virtual_host)
            if failure is None:
                return pluginbase.HealthcheckResult(available=True, reason="broker: OK")
            failures.append(failure)
            LOG.warning("Broker %s:%s does not answer: %s", host.hostname, host.port or 5672, failure)
        reason = f"broker: not reachable ({', '.join(failures)}); look at transport_url"
        return pluginbase.HealthcheckResult(available=False, reason=reason)

    def _login(self, host: Any, virtual_host: str | None) -> str | None:
        timeout = self.oslo_conf.api.health_timeout_seconds
        rabbit = getattr(self.oslo_conf, "oslo_messaging_rabbit", None)
        connection = kombu.Connection(
            transport="pyamqp",
            hostname=host.hostname,
            port=host.port,
            userid=host.username,
            password=host.password,
            virtual_host=virtual_host or "/",
            ssl=bool(rabbit and rabbit.ssl),
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
