"""`pondstack-manage broker permissions` prints what a shell carries out, for one node at a time."""

import shlex

from pondstack.cmd import manage
from pondstack.rpc.broker_permissions import OF_NOVA, permissions_of
from pondstack.rpc.identity.identity import Identity


def printed(capsys, *words):
    assert manage.run(["broker", "permissions", *words]) == 0
    return [shlex.split(line, comments=True) for line in capsys.readouterr().out.splitlines()]


def test_a_host(capsys):
    first, of_queues, of_keys = printed(capsys, "agent/h1", "compute/h1")
    found = permissions_of([Identity.parse("agent/h1"), Identity.parse("compute/h1")])
    assert first == []
    patterns = [found.configure, found.write, found.read]
    assert of_queues == ["rabbitmqctl", "set_permissions", "-p", "pondstack", "h1", *patterns]
    patterns = [found.topic_write, found.topic_read]
    assert of_keys == ["rabbitmqctl", "set_topic_permissions", "-p", "pondstack", "h1", "pondstack", *patterns]


def test_a_controller_hears_nova_on_its_virtual_host(capsys):
    words = ["controller/c1", "api/c1", "--user", "memory", "--vhost", "p", "--nova-vhost", "nova"]
    *_, last = printed(capsys, *words)
    assert last == ["rabbitmqctl", "set_permissions", "-p", "nova", "memory", OF_NOVA, OF_NOVA, OF_NOVA]


def test_the_first_line_says_how_the_service_logs_in(capsys):
    assert manage.run(["broker", "permissions", "scheduler/n1"]) == 0
    assert "# scheduler/n1: transport_url = rabbit://n1:PASSWORD@BROKER:5672/pondstack?" in capsys.readouterr().out


def test_two_nodes_have_two_users(capsys):
    assert manage.run(["broker", "permissions", "agent/h1", "agent/h2"]) == 1
    assert "one node at a time" in capsys.readouterr().err


def test_a_controllers_virtual_host_is_not_novas(capsys):
    assert manage.run(["broker", "permissions", "controller/c1", "--vhost", "/"]) == 1
    assert "virtual host of its own" in capsys.readouterr().err
    assert manage.run(["broker", "permissions", "agent/h1", "--vhost", "/"]) == 0


def test_bad_names_are_refused(capsys):
    assert manage.run(["broker", "permissions", "agent/h1:x"]) == 1
    assert "agent/h1:x" in capsys.readouterr().err
