"""How Nightmail speaks to Kafka: what an operator sets, and what is fixed because the promise depends on it.

Knows:   the settings of each client of Kafka, and why.
Never:   lets an operator weaken acknowledgements: a message that was answered *sent* is on a quorum of brokers.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

MESSAGE_BYTES = 16 * 1024 * 1024
"""The largest message: one append. Topic and producer must agree."""


class KafkaSettings(Struct, frozen=True):
    brokers: str = "127.0.0.1:9092"
    """Brokers to begin with, host:port, with commas between."""
    topic: str = "nightmail.log"
    """The topic of the log; its partitions are the shards. The group of its owners is named after it."""
    replicas: int = 3
    """Copies of each partition, when the topic is made."""
    kafka_ca_file: str = ""
    """The authority that signed the brokers' certificates, PEM; empty: no TLS."""
    kafka_cert_file: str = ""
    """This node's certificate for the brokers, PEM; empty: none is shown."""
    kafka_key_file: str = ""
    """That certificate's private key, PEM."""
    kafka_user: str = ""
    """For SCRAM-SHA-512; empty: no password is asked for."""
    kafka_password: str = ""
    """That user's password."""

    @property
    def in_sync(self) -> int:
        """Copies that must have an append before it is answered."""
        return self.replicas // 2 + 1


def owners_group(settings: KafkaSettings) -> str:
    """The group whose members own the shards."""
    return f"{settings.topic}.owners"


def common(settings: KafkaSettings) -> dict[str, Any]:
    """For every client. A broker that is paused or cut off is noticed by a request that is not answered."""
    tls, scram = bool(settings.kafka_ca_file), bool(settings.kafka_user)
    found: dict[str, Any] = {
        "bootstrap.servers": settings.brokers,
        "security.protocol": ("SASL_" if scram else "") + ("SSL" if tls else "PLAINTEXT"),
        "socket.timeout.ms": 3_000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": 50,
        "log_level": 2,  # what matters is told by callbacks
    }
    if tls:
        found["ssl.ca.location"] = settings.kafka_ca_file
    if tls and settings.kafka_cert_file:
        found |= {"ssl.certificate.location": settings.kafka_cert_file, "ssl.key.location": settings.kafka_key_file}
    if scram:
        found |= {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": settings.kafka_user,
            "sasl.password": settings.kafka_password,
        }
    return found


def administrator(settings: KafkaSettings) -> dict[str, Any]:
    """It asks for ends by the leaders it remembers, and a leader that was started again has a newer epoch: it must
    forget soon."""
    return common(settings) | {"topic.metadata.refresh.interval.ms": 500, "metadata.max.age.ms": 1_000}


def producer(settings: KafkaSettings) -> dict[str, Any]:
    """Patience for 8 s: a leader that dies is replaced by then. A desk gives an answer up after 10."""
    return common(settings) | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": 8_000,
        "socket.timeout.ms": 1_500,
        "request.timeout.ms": 1_000,
        "topic.metadata.refresh.interval.ms": 1_000,
        "message.max.bytes": MESSAGE_BYTES,
    }


def reader(settings: KafkaSettings) -> dict[str, Any]:
    """It joins no group: `group.id` is only asked for. What is trimmed away is an error, and nothing is skipped."""
    return common(settings) | {
        "group.id": f"{settings.topic}.reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 500,
        "fetch.error.backoff.ms": 50,
        "fetch.message.max.bytes": MESSAGE_BYTES,
    }


def member(settings: KafkaSettings, name: str) -> dict[str, Any]:
    """The new protocol: 2 s after its last heartbeat a member's shards go to others, if the brokers say so."""
    return common(settings) | {
        "group.id": owners_group(settings),
        "client.id": name,
        "group.protocol": "consumer",
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
    }
