"""What an operator sets about Cassandra."""

from __future__ import annotations

from msgspec import Struct

DAY_S = 24 * 60 * 60


class CassandraSettings(Struct, frozen=True):
    hosts: str = "127.0.0.1"
    """Hosts to begin with, with commas between."""
    cql_port: int = 9042
    """Their port for CQL."""
    keyspace: str = "nightmail"
    """Where the tables are."""
    datacenters: str = ""
    """Copies in each data centre, as dc1:3,dc2:3, when the keyspace is made; empty: `copies`, whatever the centre."""
    copies: int = 3
    """Copies of every row, when the keyspace is made and `datacenters` is empty."""
    cql_user: str = ""
    """For password authentication; empty: none."""
    cql_password: str = ""
    """That user's password."""
    cql_ca_file: str = ""
    """The authority that signed the nodes' certificates, PEM; empty: no TLS."""
    cql_cert_file: str = ""
    """This node's certificate for Cassandra, PEM; empty: none is shown."""
    cql_key_file: str = ""
    """That certificate's private key, PEM."""
    cql_batch_bytes: int = 40 * 1024
    """Rows of one bucket that are written together: below `batch_size_fail_threshold` of cassandra.yaml."""

    @property
    def replication(self) -> str:
        """In CQL."""
        if not self.datacenters:
            return f"{{'class': 'SimpleStrategy', 'replication_factor': {self.copies}}}"
        pairs = [part.strip().partition(":") for part in self.datacenters.split(",")]
        copies = ", ".join(f"'{name}': {int(count)}" for name, _, count in pairs)
        return f"{{'class': 'NetworkTopologyStrategy', {copies}}}"
