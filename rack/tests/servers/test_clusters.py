"""The Galera cluster and the PostgreSQL pair lose a server, keep what was committed, and come back whole."""

import kombu
import psycopg2
import pytest

from pondstack_rack import daemon
from pondstack_rack.servers import RabbitMQCluster
from pondstack_rack.servers import galera as galera_servers
from pondstack_rack.wait import wait_until


def test_galera_goes_on_without_a_node_and_takes_it_back(galera):
    galera.execute("CREATE DATABASE IF NOT EXISTS one")
    galera.execute("CREATE TABLE one.t (x INTEGER PRIMARY KEY)")
    galera.kill(0)
    galera.wait_size(2)
    assert galera.nodes[1].primary
    galera.execute("INSERT INTO one.t VALUES (1)", 1)
    galera.restart(0)
    assert galera.execute("SELECT x FROM one.t", 0) == [(1,)]
    log = galera.nodes[0].log_file.read_text()
    assert "Receiving IST" in log, "the node was copied as a whole instead of getting what it missed"
    galera.drop_database("one")


def test_postgresql_fails_over_and_takes_the_old_primary_back(postgresql_pair):
    pair = postgresql_pair
    old = pair.primary
    pair.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)")
    with pytest.raises(daemon.DaemonFailed, match="two primaries"):
        pair.promote()
    assert pair.standby.in_recovery()
    pair.kill_primary()
    pair.promote()
    assert pair.primary is not old
    pair.execute("INSERT INTO t VALUES (1)")
    pair.rejoin()
    assert pair.standby is old
    assert pair.synchronous()
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        old.execute("INSERT INTO t VALUES (2)")
    pair.execute("DROP TABLE t")


def test_a_rabbitmq_cluster_keeps_a_quorum_queue_without_a_node(short_directory):
    cluster = RabbitMQCluster(short_directory("mq"))
    try:
        cluster.start()
        first, second, _ = cluster.transport_url("v").removeprefix("rabbit://").removesuffix("/v").split(",")
        with kombu.Connection(f"amqp://{first}/v") as connection, connection.channel() as channel:
            queue = kombu.Queue("q", channel=channel, durable=True, queue_arguments={"x-queue-type": "quorum"})
            queue.declare()
            kombu.Producer(channel, routing_key="q").publish("kept")
        cluster.kill(0)
        taken: list[str] = []

        def take() -> bool:
            with kombu.Connection(f"amqp://{second}/v") as connection:
                try:
                    message = connection.SimpleQueue(kombu.Queue("q", durable=True, no_declare=True)).get(timeout=60)
                    message.ack()
                except connection.connection_errors:
                    return False  # an internal error, as long as the queue has not elected another leader
            taken.append(message.payload)
            return True

        assert wait_until(take, 60)
        assert taken == ["kept"]
        cluster.restart(0)
        assert "q" in cluster.nodes[0].rabbitmqctl("-p", "v", "list_queues", "name")
    finally:
        cluster.stop()
    assert not any(node.running for node in cluster.nodes)


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(galera_servers, "PROVIDER", tmp_path / "libgalera_smm.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(galera_servers, "SCRIPTS", tmp_path)
    assert "libgalera_smm.so" in galera_servers.missing()
    assert "wsrep_sst_rsync" in galera_servers.missing()
    assert "tools/setup.sh" in galera_servers.missing()
