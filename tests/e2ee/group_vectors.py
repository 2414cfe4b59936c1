"""The shared vectors of groups: a membership chain, a sender chain, and stored states of both."""

from __future__ import annotations

import hashlib

from nightmail.e2ee import kdf, state
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.groups import chain as group_chain
from nightmail.e2ee.groups import sealing as group_sealing
from nightmail.e2ee.groups import sender_keys
from nightmail.e2ee.labels import Label
from nightmail.e2ee.note import Note, pack, tag_of
from nightmail.e2ee.padding import pad
from nightmail.model.group_chain import head_of
from nightmail.model.ids import account_id, account_of
from nightmail.model.roster import (
    Addition,
    ChangeFault,
    Creation,
    Departure,
    GroupChange,
    GroupReceipts,
    GroupSettings,
    NewMember,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
)
from nightmail.model.words import Kind

from .vector_ends import NOW, End, Made, Named

GROUP = account_id("a group") & ~1


def member_of(end: End) -> NewMember:
    return NewMember(account_of(end.keys.address.device), signing_public(end.keys.account))


def told_roster(roster: Roster) -> Made:
    rights = roster.settings
    return {
        "settings": {
            "writers": int(rights.writers), "changers": int(rights.changers), "receipts": int(rights.receipts),
            "timer_ms": rights.timer_ms,
        },
        "members": [
            {"account": str(account), "key": member.key.hex(), "role": int(member.role)}
            for account, member in sorted(roster.members.items())
        ],
        "hash": roster.hash().hex(),
    }  # fmt: skip


def told_change(change: GroupChange) -> Made:
    """A change as JSON: accounts as text, because JavaScript's numbers end at 53 bits."""
    told: Made = {"kind": type(change).__name__.lower()}
    match change:
        case Creation(_, members) | Addition(members):
            told["members"] = [{"account": str(account), "key": key.hex()} for account, key in members]
        case Removal(accounts):
            told["accounts"] = [str(account) for account in accounts]
        case Departure(successor):
            told["successor"] = str(successor)
        case RoleChange(account, role):
            told |= {"account": str(account), "role": int(role)}
        case SettingsChange():
            pass
    return told


def told_step(by: str, change: GroupChange, blob: bytes, after: Roster, fault: ChangeFault | None = None) -> Made:
    return {
        "by": by, **told_change(change), "blob": blob.hex(), "head": head_of(blob).hex(), "fault": fault,
        "roster": told_roster(after),
    }  # fmt: skip


def make_group_chain(recorded: dict[str, dict[str, str]]) -> Made:
    """One change of each kind, and one that everybody refuses and passes over."""
    ends = {name: End(name, recorded, 0) for name in ("ada", "bob", "cyd")}
    ada = ends["ada"]
    members = {name: member_of(end) for name, end in ends.items()}
    signers = {
        end.keys.address: group_chain.Signer(members[name].key, end.keys.identity.signing_public)
        for name, end in ends.items()
    }

    creation = Creation(GroupSettings(), tuple(sorted((members["ada"], members["bob"]))))
    blob = group_chain.sign_creation(ada.keys.identity, ada.keys.address, GROUP, creation)
    known = group_chain.begin(GROUP, blob, signers.get)
    first = known
    steps = [told_step("ada", creation, blob, known.roster)]
    settings = GroupSettings(Role.ADMIN, Role.MEMBER, GroupReceipts.AT_LEAST_ONE, 30_000)
    script: list[tuple[str, GroupChange]] = [
        ("ada", Addition((members["cyd"],))),
        ("ada", SettingsChange(settings)),
        ("ada", RoleChange(members["bob"].account, Role.ADMIN)),
        ("bob", Removal((members["cyd"].account,))),
        ("bob", RoleChange(members["ada"].account, Role.MEMBER)),
        ("bob", Departure(members["ada"].account)),
    ]
    for name, change in script:
        signed = group_chain.sign_change(ends[name].keys.identity, ends[name].keys.address, known, change)
        assert isinstance(signed, bytes)
        known = group_chain.follow(known, signed, signers.get).membership
        steps.append(told_step(name, change, signed, known.roster))
    addition = Addition((members["cyd"],))
    signed = group_chain.sign_change(ada.keys.identity, ada.keys.address, known, addition)
    assert isinstance(signed, bytes)
    forged = signed[:-1] + bytes((signed[-1] ^ 1,))
    steps.append(told_step("ada", addition, forged, known.roster, ChangeFault.BAD_SIGNATURE))
    return {
        "group": str(GROUP),
        "people": {
            name: {
                "device": str(end.keys.address.device), "registration": str(end.keys.address.registration),
                "account_public": members[name].key.hex(),
                "identity_signing_private": end.keys.identity.signing.hex(),
                "identity_signing_public": end.keys.identity.signing_public.hex(),
            }
            for name, end in ends.items()
        },
        "steps": steps,
        "welcome_after_creation": group_chain.GroupWelcome.of(first).encode().hex(),
    }  # fmt: skip


def make_sender_keys(recorded: dict[str, dict[str, str]]) -> Made:
    ada = End("ada", recorded, 0)
    context = group_sealing.GroupContext(
        GROUP, hashlib.sha256(b"genesis").digest(), 3, hashlib.sha256(b"head").digest()
    )  # fmt: skip
    chain = sender_keys.make_chain(ada.keys.address, GROUP, context.genesis, Named("sender chain", recorded), NOW)
    start = chain
    conversation = group_sealing.conversation_of(GROUP)
    messages: list[Made] = []
    for number in range(4):
        handed = sender_keys.hand_on(chain)
        content = encode_content(Content(Kind.TEXT, f"message {number}"))
        nonce = hashlib.shake_256(b"nonce %d" % number).digest(16)
        note = Note(nonce, f"{ada.keys.address.device:x}:1706745600000:{number:05d}:x9k2", content)
        _, key = sender_keys.to_send(chain)
        before, (chain, sealed) = chain, group_sealing.seal_group_note(chain, context, note)
        aes_key, mac_key, iv = kdf.message_keys(key, Label.GROUP_MESSAGE_KEYS.value)
        messages.append(
            {"n": number, "chain": before.chain.hex(), "handed_on_before": handed.hex(), "message_key": key.hex(),
             "aes": aes_key.hex(), "mac": mac_key.hex(), "iv": iv.hex(),
             "id": note.id, "nonce": nonce.hex(), "content": content.hex(),
             "tag": tag_of(nonce, content, conversation).hex(), "plaintext": pack(note).hex(), "sealed": sealed.hex()}
        )  # fmt: skip
    return {
        "group": str(GROUP), "conversation": conversation, "genesis": context.genesis.hex(),
        "epoch": str(context.epoch), "head": context.head.hex(),
        "sender": {"device": str(ada.keys.address.device), "registration": str(ada.keys.address.registration)},
        "signing_private": start.signing.hex(), "verify": start.verify.hex(), "key_id": start.key_id.hex(),
        "messages": messages,
    }  # fmt: skip


def make_group_states(recorded: dict[str, dict[str, str]]) -> Made:
    """Stored states of the present form: every later program must read them."""
    ada, bob = End("ada", recorded, 0), End("bob", recorded, 0)
    creation = Creation(GroupSettings(timer_ms=30_000), tuple(sorted((member_of(ada), member_of(bob)))))
    signer = group_chain.Signer(member_of(ada).key, ada.keys.identity.signing_public)
    blob = group_chain.sign_creation(ada.keys.identity, ada.keys.address, GROUP, creation)
    known = group_chain.begin(GROUP, blob, lambda _: signer)
    writer = sender_keys.make_chain(ada.keys.address, GROUP, known.genesis, Named("stored chain", recorded), NOW)
    reader = sender_keys.receive_chain(
        sender_keys.decode_handed(sender_keys.hand_on(writer)), ada.keys.address, NOW
    )  # fmt: skip
    context = group_sealing.GroupContext(GROUP, known.genesis, 1, known.head)
    writer, lost = group_sealing.seal(writer, context, pad(b"lost"))
    writer, sealed = group_sealing.seal(writer, context, pad(b"hello"))
    reader, _ = group_sealing.open_sealed(reader, context, sealed, NOW)
    return {
        "sender_chain": state.encode_sender_chain(writer).hex(),
        "receiving_chain": state.encode_receiving_chain(reader).hex(),
        "membership": state.encode_membership(known).hex(),
        "lost": lost.hex(),
    }
