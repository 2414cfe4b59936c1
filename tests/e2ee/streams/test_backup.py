from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.errors import BadEncoding, BadRecoveryCode, Rejected, UnknownVersion, WrongBackupSecret
from nightmail.e2ee.streams import backup
from nightmail.e2ee.streams.backup import (
    BY_CODE,
    BY_PASSPHRASE,
    HEAD_BYTES,
    BackupSecret,
    new_code,
    segment_key,
    unwrap,
    wrap,
)
from nightmail.e2ee.streams.recovery_code import entropy_of, words_of
from tests.e2ee.devices import Seeded


@given(st.binary(min_size=16, max_size=16))
def test_a_code_is_twelve_words_that_say_what_was_drawn(entropy: bytes) -> None:
    words = words_of(entropy)
    assert len(words.split()) == 12
    assert entropy_of(words) == entropy


@pytest.mark.parametrize(
    "spoil",
    [str.upper, str.title, lambda code: f"  {code.replace(' ', chr(10))} ", lambda code: code.replace(" ", ", "),
     lambda code: code.replace(" ", "-"), lambda code: code.replace(" ", "\t\u3000")],
)  # fmt: skip
def test_a_code_may_be_typed_in_any_case_and_with_anything_between_its_words(spoil: Callable[[str], str]) -> None:
    code = words_of(bytes(range(16)))
    assert entropy_of(spoil(code)) == bytes(range(16))


def test_what_is_wrong_with_a_code_is_said_without_its_words() -> None:
    words = words_of(bytes(range(16))).split()
    with pytest.raises(BadRecoveryCode, match="12 words, and 11 were given"):
        entropy_of(" ".join(words[:11]))
    with pytest.raises(BadRecoveryCode, match=r"word 3 is not on the list: check its spelling$"):
        entropy_of(" ".join([*words[:2], "nightmail", *words[3:]]))
    with pytest.raises(BadRecoveryCode, match="do not fit together"):
        entropy_of(" ".join(["zoo"] * 12))


@pytest.mark.parametrize(
    "secret", [new_code(Seeded(1)), BackupSecret(BY_PASSPHRASE, "correct horse")], ids=["code", "passphrase"]
)
def test_the_key_comes_back_by_its_secret_alone(secret: BackupSecret) -> None:
    wrapped = wrap(secret, Seeded(2))
    assert len(wrapped.head) == HEAD_BYTES == 95
    assert unwrap(wrapped.head, secret) == wrapped.key
    others = [new_code(Seeded(3)), BackupSecret(BY_PASSPHRASE, "correct house")]
    for other in others:
        with pytest.raises(WrongBackupSecret):
            unwrap(wrapped.head, other)
    assert secret.text not in repr((secret, wrapped))


def test_a_passphrase_may_be_typed_on_another_keyboard() -> None:
    wrapped = wrap(BackupSecret(BY_PASSPHRASE, "caf\u00e9"), Seeded(1))
    assert unwrap(wrapped.head, BackupSecret(BY_PASSPHRASE, "cafe\u0301")) == wrapped.key


def test_no_bit_of_a_head_can_be_changed() -> None:
    secret = new_code(Seeded(1))
    head = wrap(secret, Seeded(2)).head
    for place in range(len(head)):
        changed = head[:place] + bytes((head[place] ^ 1,)) + head[place + 1 :]
        with pytest.raises(Rejected):
            unwrap(changed, secret)


@pytest.mark.parametrize(
    ("kind", "memory", "passes", "lanes"),
    [(1, 1 << 31, 3, 1), (1, 65_536, 1 << 30, 1), (1, 65_536, 3, 200), (1, 0, 0, 0), (2, 65_536, 3, 1), (3, 0, 0, 0)],
)
def test_a_head_that_would_stop_this_machine_is_refused_before_anything_is_derived(
    kind: int, memory: int, passes: int, lanes: int
) -> None:
    costs = memory.to_bytes(4, "big") + passes.to_bytes(4, "big") + bytes((lanes,))
    head = backup.MAGIC + bytes((1, kind)) + costs + bytes(76)
    with pytest.raises(BadEncoding):
        unwrap(head, BackupSecret(BY_PASSPHRASE, "correct horse"))


def test_a_head_of_a_newer_version_and_what_is_no_head_are_told_apart() -> None:
    head = wrap(secret := new_code(Seeded(1)), Seeded(2)).head
    with pytest.raises(UnknownVersion):
        unwrap(head[:8] + b"\2" + head[9:], secret)
    for wrong in (b"", head[:-1], b"x" + head[1:]):
        with pytest.raises(BadEncoding):
            backup.kind_of(wrong)
    assert backup.kind_of(head) == BY_CODE


def test_the_key_of_a_segment_follows_from_everything_before_it() -> None:
    key, link, nonce = bytes(32), b"l" * 32, b"n" * 16
    first = segment_key(key, link, 1, nonce)
    others = [
        segment_key(b"k" * 32, link, 1, nonce), segment_key(key, b"m" * 32, 1, nonce), segment_key(key, link, 2, nonce),
        segment_key(key, link, 1, b"o" * 16),
    ]  # fmt: skip
    assert len({first, *others}) == 5
    links = {
        backup.first_link(b"head"), backup.next_link(link, 1, nonce, key), backup.next_link(link, 2, nonce, key),
        backup.next_link(link, 1, nonce, link), backup.next_link(nonce * 2, 1, nonce, key),
    }  # fmt: skip
    assert len(links) == 5
