"""Certificates for the nodes of a cluster: an authority of its own, and one certificate for each node.

Touches: one folder. Never overwrites what is there.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

AUTHORITY_DAYS, NODE_DAYS = 3_650, 825
AUTHORITY = "nightmail cluster"


def make_certificates(folder: Path, name: str, hosts: list[str]) -> tuple[Path, Path, Path]:
    """Authority, certificate and key of a node, as files; the authority is made if it is missing. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_file, ca_key_file = folder / "ca.pem", folder / "ca.key"
    if not ca_file.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(AUTHORITY)
        limits = x509.BasicConstraints(ca=True, path_length=0)
        made = _builder(subject, subject, key.public_key(), AUTHORITY_DAYS).add_extension(limits, critical=True)
        _write(ca_key_file, _pem(key))
        _write(ca_file, made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    authority = x509.load_pem_x509_certificate(ca_file.read_bytes())
    authority_key = load_pem_private_key(ca_key_file.read_bytes(), None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    made = _builder(_name(name), authority.subject, key.public_key(), NODE_DAYS).add_extension(
        x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    _write(files[1], _pem(key))
    _write(files[0], made.sign(authority_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    return ca_file, *files


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)
