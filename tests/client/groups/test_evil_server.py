"""A server that lies about a group: each lie is refused, or made visible."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightmail.client.events import Unreadable
from nightmail.client.group_events import GroupBroken, GroupChangeRefused, MembersDiffer
from nightmail.client.messages import Message
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.group_chain import ChainedChange, encode_change
from nightmail.model.group_notices import GroupNotice, NoticeKind, decode_notice, encode_notice
from nightmail.model.roster import Addition, NewMember, Removal, Role, RoleChange, changed
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.words import Lane, Reason
from nightmail.wire.items import Entries, FromServer, Gone, GroupChain, GroupMembers, MemberShown
from tests.client.groups.town import a_group, a_town, accounts, add, change, members, texts, writes
from tests.client.sealed_town import stop_meddling
from tests.client.town import Device, Town

Alter = Callable[[GroupEntry], Entry]


def alters(town: Town, device: Device, alter: Alter) -> None:
    """From now on the server hands a device other entries of groups."""

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == device.me.device and isinstance(item, Entries):
            found = tuple(alter(entry) if isinstance(entry, GroupEntry) else entry for entry in item.entries)
            return replace(item, entries=found)
        return item

    town.meddle = meddle


def is_change(entry: Entry) -> bool:
    return not entry.by and decode_notice(entry.ciphertext).kind is NoticeKind.CHANGED


def forged(town: Town, group: int, actor: Device, stranger: Device) -> bytes:
    """An addition that nobody signed."""
    known = actor.machine.groups(0).known.membership(group)
    assert known is not None
    addition = Addition((NewMember(stranger.me.account, stranger.machine.account_key(stranger.me.account)),))
    after = changed(known.roster, actor.me.account, addition)
    assert not isinstance(after, int)
    me = actor.me
    return encode_change(ChainedChange(group, known.head, me.device, me.registration, addition, after.hash())) + bytes(
        64
    )


def hides_changes(town: Town, device: Device) -> None:
    """The server keeps every change of a group from a device, also when asked for."""

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to != device.me.device:
            return item
        if isinstance(item, GroupChain):
            row = device.store.group(item.group)
            assert row is not None
            return replace(item, head=row.head, length=row.index, blobs=(), epoch=row.epoch)
        if isinstance(item, Entries) and any(
            is_change(entry) for entry in item.entries if isinstance(entry, GroupEntry)
        ):
            return Gone(item.lane, item.first, item.first + len(item.entries) - 1, Reason.EXPIRED)
        return item

    town.meddle = meddle


def test_a_member_that_only_the_server_adds_is_not_believed() -> None:
    town, people = a_town("ada", "bob", "eve")
    ada, bob, eve = people
    group = a_group(town, ada, bob)
    blob = forged(town, group, ada, eve)
    notice = encode_notice(GroupNotice(NoticeKind.CHANGED, ada.me.account, 2, blob=blob))
    alters(town, bob, lambda entry: replace(entry, ciphertext=notice) if is_change(entry) else entry)
    change(town, ada, group, RoleChange(bob.me.account, Role.ADMIN))
    assert members(bob, group) == accounts([ada, bob])
    told = bob.told(GroupChangeRefused)
    assert [(event.by_handle, event.why) for event in told] == [("ada", "bad_signature")]


def test_nothing_is_sealed_for_somebody_whose_removal_is_kept_back() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(bob, group, "before")
    town.settle()
    hides_changes(town, bob)
    change(town, ada, group, Removal((cleo.me.account,)))
    message = writes(bob, group, "in the dark")
    town.settle()
    assert bob.state(message) == "pending"
    writes(ada, group, "after")
    town.settle()
    assert texts(cleo, group) == ["before"]
    assert [event.by_handle for event in bob.told(MembersDiffer)] == ["ada"]
    stop_meddling(town, bob)
    town.wait(6_000)
    town.settle()
    assert "in the dark" in texts(ada, group)
    assert texts(cleo, group) == ["before"]


def test_two_halves_that_were_shown_other_members_do_not_read_each_other_and_notice() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan")
    ada, bob, cleo, dan = people
    group = a_group(town, ada, bob, cleo)
    hides_changes(town, bob)
    add(town, ada, group, dan)
    writes(cleo, group, "for four")
    town.settle()
    assert texts(dan, group) == ["for four"]
    assert texts(bob, group) == []
    assert [event.by_handle for event in bob.told(MembersDiffer)] == ["cleo"]
    stop_meddling(town, bob)
    writes(bob, group, "now I see")
    town.settle()
    assert texts(bob, group) == ["for four", "now I see"]
    assert len(bob.told(MembersDiffer)) == 1


def test_an_old_message_under_a_new_number_is_not_shown_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    kept: list[GroupEntry] = []

    def repeat(entry: GroupEntry) -> Entry:
        if entry.group_seq and entry.by and entry.of is None:
            kept.append(entry)
            return replace(kept[0], group_seq=entry.group_seq, n=entry.n, at=entry.at)
        return entry

    alters(town, bob, repeat)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    assert bob.heard() == ["one", "two"]  # the second one was sealed again, for bob alone
    assert len(bob.told(Unreadable)) == 1


def test_a_message_is_not_shown_as_somebody_elses() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    for person in (ada, cleo):
        writes(person, group, person.me.handle)
        town.settle()

    def swap(entry: GroupEntry) -> Entry:
        swapped = {ada.me.device: cleo.me.device, cleo.me.device: ada.me.device}
        return replace(entry, by=swapped.get(entry.by, entry.by)) if entry.group_seq else entry

    alters(town, bob, swap)
    writes(ada, group, "by ada")
    writes(cleo, group, "by cleo")
    town.settle()
    wrong = [m for m in bob.told(Message) if m.text.startswith("by ") and m.text != f"by {m.handle}"]
    assert not wrong


def test_what_a_removed_member_wrote_is_not_shown_behind_the_removal() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(cleo, group, "before")
    town.settle()
    bob.cut()
    writes(cleo, group, "late")
    town.settle()
    change(town, ada, group, Removal((cleo.me.account,)))

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, Entries) and item.lane is Lane.NORMAL:
            return replace(item, entries=tuple(reversed(item.entries)))
        return item

    town.meddle = meddle
    bob.connect()
    town.settle()
    assert texts(bob, group) == ["before"]
    assert [event.by_handle for event in bob.told(MembersDiffer)] == ["cleo"]


def test_a_change_whose_notice_is_lost_is_found_by_asking() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, ada, bob)

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, Entries) and any(is_change(e) for e in item.entries if not e.by):
            return Gone(item.lane, item.first, item.first + len(item.entries) - 1, Reason.EXPIRED)
        return item

    town.meddle = meddle
    add(town, ada, group, cleo)
    writes(cleo, group, "hello")
    town.settle()
    assert texts(bob, group) == ["hello"]
    assert members(bob, group) == accounts(people)


def test_a_notice_that_is_nonsense_stops_the_group_until_a_member_says_where_it_stands() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    nonsense = encode_notice(GroupNotice(NoticeKind.CHANGED, ada.me.account, 2, blob=b"\1nonsense"))
    alters(town, bob, lambda entry: replace(entry, ciphertext=nonsense) if is_change(entry) else entry)
    change(town, ada, group, RoleChange(bob.me.account, Role.ADMIN))
    row = bob.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.BROKEN
    assert len(bob.told(GroupBroken)) == 1
    stop_meddling(town, bob)
    writes(ada, group, "are you there?")
    town.settle()
    town.wait(2_000)
    town.settle()
    row = bob.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.JOINED
    assert texts(bob, group) == ["are you there?"]


def test_a_newcomer_is_not_shown_members_that_nobody_added() -> None:
    town, people = a_town("ada", "bob", "eve")
    ada, bob, eve = people

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, GroupMembers):
            shown = MemberShown(eve.me.account, bytes(32), Role.MEMBER, item.members[0].state)
            return replace(item, members=tuple(sorted((*item.members, shown), key=lambda each: each.account)))
        return item

    town.meddle = meddle
    group = a_group(town, ada, bob)
    assert members(bob, group) == []
    assert len(bob.told(GroupBroken)) == 1


def test_a_chain_that_is_shorter_than_before_stops_the_group() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    change(town, ada, group, RoleChange(bob.me.account, Role.ADMIN))

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, GroupChain):
            return replace(item, length=1, head=bytes(32), blobs=())
        return item

    town.meddle = meddle
    message = writes(bob, group, "to whom?")
    town.settle()
    assert len(bob.told(GroupBroken)) == 1
    assert bob.state(message) != "sent"


def test_an_epoch_that_never_was_keeps_nobody_from_writing_later() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, GroupChain):
            return replace(item, epoch=item.epoch + 1_000)
        return item

    town.meddle = meddle
    message = writes(bob, group, "when is this?")
    town.settle()
    stop_meddling(town, bob)
    town.wait(2_000)
    town.settle()
    assert bob.state(message) != "pending"
    assert texts(ada, group) == ["when is this?"]
