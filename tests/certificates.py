"""Private certificates for tests of TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(folder: Path, alternative_name: str) -> tuple[Path, Path]:
    """A self-signed certificate for this subject alternative name ("IP:127.0.0.1"), and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    named = ["-addext", f"subjectAltName={alternative_name}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", *made.split(), *named], check=True, capture_output=True)
    return cert, key
