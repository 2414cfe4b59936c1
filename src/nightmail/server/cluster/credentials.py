"""The certificates of nodes: read from files, and made for a new cluster."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from nightmail.engine.cluster.links.grpc_links import Credentials
from nightmail.engine.ports import EngineError
from nightmail.server.cluster_settings import ClusterSettings


def credentials_of(settings: ClusterSettings) -> Credentials | None:
    """None: without TLS, which is for loopback only. Raises EngineError."""
    files = settings.node_ca_file, settings.node_cert_file, settings.node_key_file
    if not any(files):
        if not _is_loopback(settings.node_host):
            raise EngineError(
                "nodes that are not on one machine need cluster.node_ca_file, node_cert_file, node_key_file"
            )
        return None
    try:
        return Credentials(*(Path(file).read_bytes() for file in files))
    except OSError as error:
        raise EngineError(f"the certificates of this node cannot be read: {error.strerror}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
