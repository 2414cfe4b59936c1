"""What an operator sets about Redis."""

from __future__ import annotations

from msgspec import Struct


class RedisSettings(Struct, frozen=True):
    redis_url: str = ""
    """The Redis that nodes share, as redis://host:6379/0, or rediss:// for TLS; empty: none, and nodes ask each
    other who is connected, which a few of them can."""
    redis_user: str = ""
    """For its access list; empty: the default user."""
    redis_password: str = ""
    """That user's password; empty: none is asked for."""
    redis_ca_file: str = ""
    """The authority that signed its certificate, PEM; empty: those that the machine trusts."""
    redis_cert_file: str = ""
    """This node's certificate for Redis, PEM; empty: none is shown."""
    redis_key_file: str = ""
    """That certificate's private key, PEM."""
    redis_prefix: str = ""
    """What all keys begin with, if others use the same Redis."""
    redis_timeout_ms: int = 300
    """How long one pipeline may take, in ms. Then Redis counts as away for half a second."""
