"""What an operator sets about a cluster, beside its engines."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

SHARED_SECRETS = ("accounts.secret", "schedule.secret", "operator.token")
"""What one node made, the others would not know."""


class ClusterSettings(Struct, frozen=True):
    enabled: bool = False
    """Whether this server is a node of a cluster. Its data folder then holds nothing that others need."""
    shards: int = 16
    """Parts that accounts are divided into, when the cluster is made. It never changes."""
    buckets: int = 1_024
    """Parts that the rows of each shard are divided into in Cassandra, when the cluster is made. It never changes."""
    node_host: str = "127.0.0.1"
    """The address to listen at for other nodes."""
    node_port: int = 0
    """The port for other nodes. 0: any that is free."""
    node_address: str = ""
    """Where other nodes reach this one, host:port; empty: where it listens."""
    node_ca_file: str = ""
    """The authority of the nodes' certificates, PEM (`nightmail cluster certs`); empty: nodes are not asked who they
    are, which only loopback allows."""
    node_cert_file: str = ""
    """This node's certificate, PEM."""
    node_key_file: str = ""
    """That certificate's private key, PEM."""


def missing_secret(values: Mapping[str, object]) -> str | None:
    return next((name for name in SHARED_SECRETS if not values[name]), None)
