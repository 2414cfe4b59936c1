"""The verdict, on histories with something wrong in them."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.messages import Message, Tick
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.ids import MessageId
from nightmail.model.words import Kind, Lane
from nightmail.verify.ledger import Ledger, MessageLabel, Verdict

DEVICES = {0: (0, 1), 1: (2, 3)}
"""Two people with two devices each."""


class Story:
    """Device 0 wrote to the second person, and everything went well; unless somebody meddles."""

    def __init__(self, count: int = 3) -> None:
        self.ledger = Ledger("run", DEVICES)
        self.histories: dict[int, list[Message]] = {device: [] for devices in DEVICES.values() for device in devices}
        for number in range(1, count + 1):
            label = self.ledger.next_label(0, 1, Lane.NORMAL)
            assert label == MessageLabel("run", 0, 1, Lane.NORMAL, number)
            ident = str(MessageId(1_000 + number, number, 1, "x"))
            message = Message(
                id=ident, peer=1, by=1, own=False, at=number, state=Tick.SENT,
                body=encode_content(Content(Kind.TEXT, label.text(10))),
            )  # fmt: skip
            self.ledger.wrote(ident, label)
            self.ledger.was_sent(ident)
            self.ledger.was_delivered(0, ident)
            self.histories[0].append(replace(message, own=True, state=Tick.DELIVERED))
            for device in (1, 2, 3):
                self.ledger.was_shown(device, message)
                self.histories[device].append(message)

    def verdict(self) -> Verdict:
        return self.ledger.judge(self.histories)


def counts(verdict: Verdict) -> tuple[int, int, int, int]:
    return verdict.lost, verdict.doubled, verdict.reordered, verdict.unticked


def test_when_all_went_well_nothing_is_broken() -> None:
    story = Story()
    assert story.ledger.done
    verdict = story.verdict()
    assert (verdict.sent, verdict.delivered, counts(verdict), verdict.notes) == (3, 3, (0, 0, 0, 0), [])


def test_what_one_device_does_not_have_is_lost() -> None:
    story = Story()
    del story.histories[3][1]
    verdict = story.verdict()
    assert (verdict.delivered, counts(verdict)) == (2, (1, 0, 0, 0))
    assert "not on devices [3]" in verdict.notes[0]


def test_an_authors_other_device_counts_too_and_so_does_the_author() -> None:
    story = Story()
    del story.histories[1][0], story.histories[0][2]
    assert counts(story.verdict()) == (2, 0, 0, 0)


def test_what_was_never_sent_although_everything_healed_is_lost() -> None:
    story = Story()
    label = story.ledger.next_label(0, 1, Lane.NORMAL)
    story.ledger.wrote("1:9:9:x", label)
    assert not story.ledger.done
    assert story.verdict().lost > 0


def test_what_failed_with_a_reason_is_not_lost() -> None:
    story = Story()
    label = story.ledger.next_label(0, 1, Lane.NORMAL)
    story.ledger.wrote("1:9:9:x", label)
    story.ledger.has_failed("1:9:9:x", "too_old")
    assert counts(story.verdict()) == (0, 0, 0, 0)


def test_what_is_told_twice_or_stands_twice_is_doubled() -> None:
    story = Story()
    story.ledger.was_shown(2, story.histories[2][0])
    story.histories[3].append(replace(story.histories[3][-1], id="1:9:9:other"))
    lost, doubled, _, _ = counts(story.verdict())
    assert (lost, doubled) == (0, 2)


def test_another_order_in_the_history_or_in_what_was_told_is_reordered() -> None:
    story = Story()
    story.histories[2].reverse()
    assert counts(story.verdict()) == (0, 0, 2, 0)
    story = Story()
    told = list(story.ledger.shown[3])
    story.ledger.shown[3].clear()
    story.ledger.shown[3].update(reversed(told))
    assert counts(story.verdict()) == (0, 0, 2, 0)


def test_devices_that_disagree_about_a_stamp_are_reordered() -> None:
    story = Story()
    story.histories[3][0] = replace(story.histories[3][0], at=99)
    assert counts(story.verdict()) == (0, 0, 1, 0)


def test_an_author_who_never_learns_is_counted() -> None:
    story = Story()
    story.histories[0][0] = replace(story.histories[0][0], state=Tick.SENT)
    assert counts(story.verdict()) == (0, 0, 0, 1)


def test_a_message_to_a_group_must_be_on_every_device_of_every_member() -> None:
    ledger = Ledger("run", {0: (0, 1), 1: (2,), 2: (3,)}, {3: (0, 1, 2)})
    label = ledger.next_label(0, 3, Lane.NORMAL)
    ident = str(MessageId(1_001, 1, 1, "x"))
    body = encode_content(Content(Kind.TEXT, label.text(10)))
    message = Message(id=ident, peer=8, by=1, own=False, at=1, state=Tick.SENT, body=body)
    ledger.wrote(ident, label)
    ledger.was_sent(ident)
    ledger.was_shown(1, message)
    ledger.was_shown(2, message)
    assert not ledger.done
    ledger.was_delivered(0, ident)
    assert ledger.done
    histories = {0: [replace(message, own=True, state=Tick.DELIVERED)], 1: [message], 2: [message], 3: []}
    verdict = ledger.judge(histories)
    assert (verdict.sent, verdict.to_group, verdict.delivered, counts(verdict)) == (1, 1, 1, (0, 0, 0, 0))
    verdict = ledger.judge({**histories, 2: []})
    assert (verdict.delivered, counts(verdict)) == (0, (1, 0, 0, 0))
    verdict = ledger.judge({**histories, 2: [message, message]})
    assert counts(verdict)[1] == 1
