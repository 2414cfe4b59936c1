"""Asks the person at the primary device before a new device is linked.

Never:   lets a label of the new device control the terminal.
"""

from __future__ import annotations

import hashlib

import click

from nightmail.client.own_devices.link_request import LinkRequest

from .errors import Exit, Failure
from .output import plain
from .unlocking import can_ask


def fingerprint(request: LinkRequest) -> str:
    """Of the new device's key. Both devices show it, so a person can see that they mean the same device."""
    digest = hashlib.sha256(request.identity).hexdigest()
    return " ".join(digest[at : at + 4] for at in range(0, 16, 4))


def confirm(request: LinkRequest, question: str) -> None:
    """Show which device asks, and ask the person. Raises Failure or click.Abort if the answer is not yes."""
    for name, value in (
        ("label", request.label), ("platform", request.platform.name.lower()), ("fingerprint", fingerprint(request)),
    ):  # fmt: skip
        click.echo(f"{name:12} {plain(value)}", err=True)
    if not can_ask():
        raise Failure(
            Exit.USAGE,
            "A confirmation is needed, and standard input is not a terminal.",
            "If this is your device, use --yes.",
        )
    click.confirm(question, abort=True, err=True)
