"""All limits on what an HTTP request may cost."""

from __future__ import annotations

from msgspec import Struct


class HttpLimits(Struct, frozen=True):
    connections: int = 1_000
    """Requests under way, and connections kept for the next one; others are told to come back."""
    address_connections: int = 100
    """Of these, from one address (IPv6: from one /64). Health and metrics are not counted, and have a reserve."""
    account_requests: int = 16
    """Requests of one account that may be under way at once."""
    request_bytes: int = 65_536
    """Bytes of one request's body; more is not read."""
    schedule_bytes: int = 262_144
    """Likewise, of a request that schedules a message."""
    request_ms: int = 10_000
    """A body that has not come after this time, in ms, is not waited for."""
    answer_ms: int = 5_000
    """How long a request waits, in ms, until what it asked for is durable; then the outcome is unknown."""
    registrations_per_minute: int = 60
    """New accounts from one address, over time and at once; 0: no limit. An IPv6 address counts with its /64."""
    lookups_per_minute: int = 600
    """Accounts that one account may look up by handle in a minute."""
    unknown_per_minute: int = 60
    """Handles without an account that one account, and one address, may ask for in a minute; then none is looked up
    for a while."""
    addresses: int = 10_000
    """Addresses, handles and accounts of which something is counted; those that used least are forgotten first."""
    links_per_minute: int = 10
    """Devices that one account may link in a minute, over time and at once: each uses up a number for ever."""
    codes_per_hour: int = 5
    """Codes sent to one handle, over time and at once; 0: no limit."""
    code_tries: int = 5
    """Wrong codes for one handle in ten minutes; then none is looked at for a while."""
    code_tries_per_day: int = 20
    """Wrong codes for one handle in a day, so that patience does not help."""
    code_tries_per_minute: int = 60
    """Wrong codes for all handles together in a minute; then none is looked at for a moment."""
    traces: int = 16
    """Questions to the delivery log that may wait; each is read from the disk."""
    schedules_per_minute: int = 600
    """Messages that one account may schedule by HTTP in a minute, over time and at once."""
