"""The jars of Kafka and Cassandra, fetched once per machine by Maven and only read afterwards.

Knows:   which versions, and where they are kept (`NIGHTMAIL_ENGINES_CACHE`, or ~/.cache/nightmail-engines).
Touches: that folder, under a lock: several jobs may share it.
Never:   leaves a half-filled folder under its final name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("NIGHTMAIL_ENGINES_CACHE") or Path.home() / ".cache" / "nightmail-engines").absolute()
COORDINATES = {
    "kafka": ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36"),
    "cassandra": ("org.apache.cassandra:cassandra-all:5.0.9",),
}
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
TRIES = 3
"""A new try goes on with the downloads of the one before."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>nightmail</groupId><artifactId>engine-jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class NoEngine(Exception):
    """An engine cannot be had here. Its text is one sentence for the person who wants it."""


def folder(kind: str) -> Path:
    """Named for the version: a newer one is fetched beside it."""
    return CACHE / f"{kind}-{COORDINATES[kind][0].rsplit(':', 1)[1]}"


def class_path(kind: str) -> str:
    """Explicit and sorted: a wildcard would follow the order of the directory."""
    return ":".join(sorted(str(jar) for jar in folder(kind).glob("*.jar")))


def fetch(kind: str) -> None:
    """Do nothing if they are there. Raises NoEngine."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder(kind).exists():
            return
        if not shutil.which("mvn"):
            raise NoEngine(f"Maven is needed once, to fetch {kind}: install the Debian package maven")
        work = CACHE / f"fetching-{kind}"
        work.mkdir(exist_ok=True)
        dependencies = "".join(DEPENDENCY.format(*name.split(":")) for name in COORDINATES[kind])
        (work / "pom.xml").write_text(POM.format(dependencies=dependencies))
        command = ["mvn", "-B", "-q", "-ntp", "-f", f"{work}/pom.xml", f"-Dmaven.repo.local={work}/repository", COPY]
        if not any(subprocess.run(command, check=False).returncode == 0 for _ in range(TRIES)):
            raise NoEngine(f"Maven could not fetch the jars of {kind}")
        (work / "target" / "dependency").rename(folder(kind))
        shutil.rmtree(work)
