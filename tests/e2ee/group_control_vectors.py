"""The shared vectors of control messages in groups: what stands in their contents, byte by byte."""

from __future__ import annotations

import hashlib

from nightmail.client.groups import controls
from nightmail.client.store.group_rows import HeadAt
from nightmail.e2ee.groups import chain as group_chain
from nightmail.e2ee.groups import sender_keys
from nightmail.model.roster import Creation, GroupSettings

from .group_vectors import GROUP, member_of
from .vector_ends import NOW, End, Made, Named

NAME, PICTURE = "Freundinnen und Freunde ☕", b"picture"


def make_group_controls(recorded: dict[str, dict[str, str]]) -> Made:
    """One of each kind; of a welcome and of what is wanted also the smallest."""
    ada, bob, cyd = (End(name, recorded, 0) for name in ("ada", "bob", "cyd"))
    creation = Creation(GroupSettings(), tuple(sorted((member_of(ada), member_of(bob)))))
    signer = group_chain.Signer(member_of(ada).key, ada.keys.identity.signing_public)
    blob = group_chain.sign_creation(ada.keys.identity, ada.keys.address, GROUP, creation)
    known = group_chain.begin(GROUP, blob, lambda _: signer)
    chain = sender_keys.make_chain(ada.keys.address, GROUP, known.genesis, Named("control chain", recorded), NOW)
    handed = sender_keys.hand_on(chain)
    welcome = group_chain.GroupWelcome.of(known).encode()
    earlier = HeadAt(1, hashlib.sha256(b"earlier head").digest(), 4)
    started = controls.GroupStart(
        welcome, 3, NAME, PICTURE, NOW, NOW + 1, (earlier,), ((member_of(cyd).account, 2),)
    )  # fmt: skip
    bare = controls.GroupStart(welcome, 1, "", b"")
    ids = (f"{ada.keys.address.device:x}:1706745600000:00001:x9k2",)
    wanted = controls.Wanted(chain.key_id, ids, welcome=True)
    return {
        "key": {"handed": handed.hex(), "content": controls.key(handed).hex()},
        "welcomes": [
            {**_told_start(start), "content": controls.welcome(start).hex()} for start in (started, bare)
        ],
        "wanted": [
            {"key_id": said.key_id.hex(), "ids": list(said.ids), "welcome": said.welcome,
             "content": controls.wanted(said).hex()}
            for said in (wanted, controls.Wanted())
        ],
        "name": {"name": NAME, "content": controls.name(NAME).hex()},
        "picture": {"picture": PICTURE.hex(), "content": controls.picture(PICTURE).hex()},
        "groups": {
            "groups": [_told_start(start) for start in (started, bare)],
            "content": controls.groups([started, bare]).hex(),
        },
    }  # fmt: skip


def _told_start(start: controls.GroupStart) -> Made:
    return {
        "welcome": start.welcome.hex(), "index": start.index, "name": start.name, "picture": start.picture.hex(),
        "named_at": start.named_at, "pictured_at": start.pictured_at,
        "heads": [{"index": at.index, "head": at.head.hex(), "seq": at.seq} for at in start.heads],
        "departed": [{"account": str(account), "index": index} for account, index in start.departed],
    }  # fmt: skip
