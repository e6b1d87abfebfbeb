"""Real MariaDB, Galera, PostgreSQL and RabbitMQ servers of our own: Debian's packages, one directory, loopback only.

They read no file of /etc and touch no server that the machine runs already. Run as root. PostgreSQL refuses root: it
runs as the user postgres, which must be able to reach the directory.
"""

from pondstack.testing.servers.base import LOOPBACK, UNIX_SOCKET_MAX_BYTES, USER, Server, free_port
from pondstack.testing.servers.galera import GaleraCluster
from pondstack.testing.servers.mariadb import MariaDBServer
from pondstack.testing.servers.postgresql import PostgreSQLServer
from pondstack.testing.servers.postgresql_pair import PostgresPair
from pondstack.testing.servers.rabbitmq import RabbitMQServer
from pondstack.testing.servers.rabbitmq_cluster import RabbitMQCluster

__all__ = [
    "LOOPBACK",
    "UNIX_SOCKET_MAX_BYTES",
    "USER",
    "GaleraCluster",
    "MariaDBServer",
    "PostgreSQLServer",
    "PostgresPair",
    "RabbitMQCluster",
    "RabbitMQServer",
    "Server",
    "free_port",
]
