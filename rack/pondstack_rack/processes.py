"""How the rack runs programs: set-up commands, uwsgi applications, and daemons that consume an RPC queue."""

import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import amqp
from amqp.exceptions import AMQPError

from pondstack_rack.daemon import Daemon
from pondstack_rack.layout import Layout, RackError, program
from pondstack_rack.servers import LOOPBACK, USER, Certificate

START_SECONDS = 180.0
STOP_SECONDS = 30.0
API_THREADS = 4
VHOST = "pondstack"
"""Where pondstack's services call each other; the others do in the broker's first virtual host."""


def run(layout: Layout, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command to its end with its output in log/<name>.log; RackError with the log's tail when it fails."""
    log = layout.log / f"{name}.log"
    with log.open("ab") as out:
        done = subprocess.run(
            list(argv),
            env={**environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=False,
        )
    if done.returncode:
        tail = "".join(f"\n    {line}" for line in log.read_text(errors="replace").splitlines()[-12:])
        raise RackError(f"{Path(argv[0]).name} {' '.join(argv[1:])} ended with {done.returncode}; log: {log}{tail}")


def wsgi(layout: Layout, name: str, module: str, env: Mapping[str, str], workers: int = 1) -> Daemon:
    """Return a uwsgi daemon for a WSGI application given by its module path."""
    address, tls = f"{LOOPBACK}:{layout.port(name)}", layout.certificate("api")
    listener = f"--http-socket={address}" if tls is None else f"--https-socket={address},{tls.certificate},{tls.key}"
    argv = [
        program("uwsgi"),
        *(listener, "--module", module, "--need-app"),
        *("--master", "--lazy-apps", "--die-on-term", "--enable-threads"),
        *("--processes", str(workers), "--threads", str(API_THREADS)),
        *("--buffer-size", "65535", "--listen", "100", "--disable-logging"),
        # Without it a client reuses a connection that uwsgi has closed, and its POST is reset.
        *("--add-header", "Connection: close"),
        # An answer that the application gives before it has read the body is lost with the connection, which is reset.
        *("--post-buffering", "65536"),
        # glanceclient sends images in chunks of 1 MiB, which with their frame are just over uwsgi's limit.
        *("--chunked-input-limit", str(16 << 20)),
    ]
    ready = _http_ready(f"{layout.url(name)}/", tls)
    return _daemon(layout, name, argv, env=env, ready=ready)


def rpc(layout: Layout, name: str, argv: Sequence[str], queue: str) -> Daemon:
    """Return a daemon that is ready when it consumes `queue` of the broker."""
    return _daemon(layout, name, argv, ready=lambda: has_consumer(layout, queue))


def plain(layout: Layout, name: str, argv: Sequence[str], ready: Callable[[], bool] | None = None) -> Daemon:
    """Return a daemon with a readiness condition of its own."""
    return _daemon(layout, name, argv, ready=ready)


def has_consumer(layout: Layout, queue: str) -> bool:
    """Whether somebody consumes a queue. Real readiness of an RPC server: it has finished its start-up by then."""
    password = (layout.root / "rabbitmq" / "password").read_text()
    address, authority = f"{LOOPBACK}:{layout.port('rabbitmq')}", layout.authority
    tls = {"ca_certs": str(authority), "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": LOOPBACK}
    login = {"userid": USER, "password": password, "virtual_host": VHOST if queue.startswith(VHOST) else "/"}
    try:
        with amqp.Connection(address, ssl=tls if authority else False, **login) as connection:
            return bool(connection.channel().queue_declare(queue, passive=True).consumer_count)
    except (AMQPError, OSError):
        return False


def _http_ready(url: str, tls: Certificate | None) -> Callable[[], bool]:
    def ready() -> bool:
        try:
            urllib.request.urlopen(url, timeout=10, context=tls.context() if tls else None).close()
        except urllib.error.HTTPError as error:
            return error.code < 500
        except OSError:
            return False
        return True

    return ready


def _daemon(
    layout: Layout,
    name: str,
    argv: Sequence[str],
    *,
    ready: Callable[[], bool] | None,
    env: Mapping[str, str] | None = None,
) -> Daemon:
    return Daemon(
        name,
        argv,
        layout.log,
        env={**environment(), **(env or {})},
        ready=ready,
        start_seconds=START_SECONDS,
        stop_seconds=STOP_SECONDS,
    )


def environment() -> dict[str, str]:
    """Return our programs' environment: the venv first, no proxies (all is on loopback), nothing of other clouds."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OS_") and "proxy" not in key.lower()}
    kept.update(PATH=f"{Path(program('python')).parent}:{os.environ.get('PATH', os.defpath)}", PYTHONWARNINGS="ignore")
    return kept
