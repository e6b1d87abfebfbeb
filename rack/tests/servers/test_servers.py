"""The real servers start, keep what was committed over stop and kill, and leave no process behind."""

import itertools
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oslo_messaging
import psutil
import pytest
import sqlalchemy as sa
from oslo_config import cfg

from pondstack_rack import daemon
from pondstack_rack.servers import LOOPBACK, MariaDBServer, PostgreSQLServer, RabbitMQServer, base, free_port


@pytest.mark.parametrize("server_class", [MariaDBServer, PostgreSQLServer])
def test_database_survives_restart_and_kill(server_class, short_directory, monkeypatch):
    directory = short_directory("s")
    # A shared temporary folder is for none of its programs: MariaDB servers remove each other's tables there.
    monkeypatch.setenv("TMPDIR", str(directory / "nothing"))
    server = server_class(directory)
    server.start()
    try:
        url = server.database_url("one")
        assert server.database_url("one") == url
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE t (x INTEGER)"))
            connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        pid = server.daemon.pid
        server.start()
        assert server.daemon.pid == pid
        server.restart()
        assert server.daemon.pid != pid
        with engine.begin() as connection:
            connection.execute(sa.text("INSERT INTO t VALUES (2)"))
        server.kill()
        server.start()
        with engine.begin() as connection:
            assert connection.execute(sa.text("SELECT count(*) FROM t")).scalar() == 2
    finally:
        server.stop()
    server.stop()
    assert not server.running


def test_rabbitmq_answers_and_takes_its_epmd_along(short_directory):
    server = RabbitMQServer(short_directory("s"))
    server.start()
    try:
        url = server.transport_url("other")
        assert server.transport_url("other") == url
        transport = oslo_messaging.get_notification_transport(cfg.ConfigOpts(), url=url)
        notifier = oslo_messaging.Notifier(transport, publisher_id="t", driver="messagingv2", topics=["t"])
        notifier.info({}, "event", {})
        assert "t.info" in server.rabbitmqctl("-p", "other", "list_queues", "name")
        transport.cleanup()
        server.kill()
        server.start()
    finally:
        server.stop()
    assert not server.running
    assert not server._epmd.running


def test_a_broker_that_greets_and_has_not_started_is_not_ready(short_directory):
    """Its listener opens a moment before its app runs; virtual hosts are made from then on."""
    server = RabbitMQServer(short_directory("s"))
    with socket.create_server((LOOPBACK, server.port)) as listener, ThreadPoolExecutor(1) as pool:

        def greet() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(8)
                link.sendall(b"\x01")

        greeting = pool.submit(greet)
        server._epmd.start()  # rabbitmqctl would start one that nobody stops
        try:
            assert not server._is_ready()
        finally:
            server._epmd.stop()
        greeting.result(60)


def test_a_failed_start_names_the_log(tmp_path: Path):
    broken = daemon.Daemon("broken", ["/bin/sh", "-c", "echo no such luck; exit 3"], tmp_path, ready=lambda: False)
    with pytest.raises(daemon.DaemonFailed, match=r"broken ended.*broken\.log\n    no such luck"):
        broken.start()


def test_the_pid_of_another_process_is_left_alone(tmp_path: Path):
    one = daemon.Daemon("one", ["/bin/sleep", "60"], tmp_path)
    one.start()
    try:
        record = one.pid_file.read_text()
        one.pid_file.write_text(record.replace('"create_time": ', '"create_time": 1'))
        assert not one.running
        one.stop()
        one.pid_file.write_text(record)
        assert one.running
    finally:
        one.stop()
    assert not one.running


@pytest.mark.parametrize("seconds", [-36.0, -1.0, 1.0, 36.0])
def test_a_clock_that_is_set_hides_no_process(tmp_path: Path, monkeypatch, seconds):
    one = daemon.Daemon("one", ["/bin/sleep", "60"], tmp_path)
    one.start()
    try:
        booted = psutil.boot_time() + seconds
        monkeypatch.setattr("psutil._psplatform.boot_time", lambda: booted)
        assert not one.launch()
    finally:
        one.stop()
    assert daemon.recorded(one.pid_file) is None


def test_the_pid_file_of_a_former_release_is_understood(tmp_path: Path):
    one = daemon.Daemon("one", ["/bin/sleep", "60"], tmp_path)
    one.start()
    try:
        record = json.loads(one.pid_file.read_text())
        del record["boot_time"]
        one.pid_file.write_text(json.dumps(record))
        assert one.pid == record["pid"]
    finally:
        one.stop()


def test_a_long_directory_is_refused_by_name(tmp_path: Path):
    server = MariaDBServer(tmp_path / ("d" * 120))
    with pytest.raises(daemon.DaemonFailed, match="longer than a unix socket"):
        server.start()


def test_a_port_is_given_once(monkeypatch):
    """Also while its server does not listen yet, as the one that copies a Galera node's data; it still can."""
    given = free_port()
    choices = itertools.chain([given], base._PORTS)
    monkeypatch.setattr(base.secrets, "choice", lambda _: next(choices))
    assert free_port() != given
    with socket.create_server((LOOPBACK, given)) as server:  # with SO_REUSEADDR, as servers do
        assert server.getsockname()[1] == given
