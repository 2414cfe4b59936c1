"""A profile at rest: nothing in it can be read, nothing in it can be changed unseen, and who opens it."""

from __future__ import annotations

import asyncio
import base64
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backend
import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from nightmail.client import Client, KeyFile, Keyring, Passphrase
from nightmail.client.errors import (
    Misused,
    ProfileDamaged,
    ProfileError,
    ProfileLocked,
    ProfileTooNew,
    WrongSecret,
)
from nightmail.client.profile import key_places, keybox
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.protection import Secret
from nightmail.client.store.rows import Cursors
from nightmail.client.store.sqlite import NAME
from tests.client.harbour import harbour
from tests.client.profile_files import bytes_of, write_marker

HORSE = Passphrase("correct horse")


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1  # pyright: ignore[reportAssignmentType]  # as every backend writes it

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[Ring]:
    before = keyring.get_keyring()
    keyring.set_keyring(ring := Ring())
    yield ring
    keyring.set_keyring(before)


# --- what keeps it ----------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [None, HORSE, KeyFile(), Keyring()], ids=["none", "passphrase", "file", "keyring"])
def test_whatever_keeps_it_opens_it_again(secret: Secret | None, tmp_path: Path, ring: Ring) -> None:
    profile = Profile(tmp_path, secret)
    profile.store.put_cursors(Cursors(7))
    profile.store.commit()
    profile.close()
    again = Profile(tmp_path, secret)
    assert again.store.cursors() == Cursors(7)
    again.close()


def test_a_passphrase_is_wanted_in_words_and_a_wrong_one_touches_nothing(tmp_path: Path) -> None:
    Profile(tmp_path, HORSE).close()
    before = bytes_of(tmp_path)
    with pytest.raises(ProfileLocked, match="needs the passphrase") as wanted:
        Profile(tmp_path)
    assert wanted.value.kept_by == "passphrase"
    with pytest.raises(WrongSecret, match="does not open"):
        Profile(tmp_path, Passphrase("correct house"))
    with pytest.raises(ProfileLocked, match="not with the given secret"):
        Profile(tmp_path, KeyFile())
    assert bytes_of(tmp_path) == before
    Profile(tmp_path, HORSE).close()


def test_the_same_passphrase_may_come_as_other_code_points(tmp_path: Path) -> None:
    Profile(tmp_path, Passphrase("caf\u00e9")).close()
    Profile(tmp_path, Passphrase("cafe\u0301")).close()


def test_a_guess_at_a_passphrase_costs_64_mib_and_three_passes(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    Profile(folder, HORSE).close()
    box = msgspec.json.decode((folder / "key").read_bytes())
    assert (box["memory_kib"], box["passes"], box["lanes"]) == (64 * 1024, 3, 1)
    # What is written there is also what is done: outside of this program, the same parameters give the key.
    salt, nonce, sealed = (base64.b64decode(box[name]) for name in ("salt", "nonce", "sealed"))
    kdf = Argon2id(salt=salt, length=32, iterations=3, lanes=1, memory_cost=64 * 1024)
    bound = b"nightmail profile key\0" + msgspec.json.encode({**box, "sealed": ""})
    key = AESGCM(kdf.derive(b"correct horse")).decrypt(nonce, sealed, bound)
    assert key == keybox.open_box(folder, HORSE)


def test_a_passphrase_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    Profile(tmp_path, HORSE).close()
    assert all(b"horse" not in content for content in bytes_of(tmp_path).values())
    assert "horse" not in repr(HORSE)
    with pytest.raises(Misused, match="empty"):
        Profile(tmp_path / "other", Passphrase(""))


def test_a_key_file_is_readable_by_its_owner_alone_and_may_be_elsewhere(tmp_path: Path) -> None:
    stick = tmp_path / "stick.key"
    folder = tmp_path / "profile"
    Profile(folder, KeyFile(stick)).close()
    assert stat.S_IMODE(stick.stat().st_mode) == 0o600
    assert set(bytes_of(folder)) == {"lock", "key", NAME}
    Profile(folder).close()  # the profile remembers where it is
    moved = stick.rename(tmp_path / "moved.key")
    with pytest.raises(ProfileLocked, match="is not there"):
        Profile(folder)
    Profile(folder, KeyFile(moved)).close()
    moved.write_text("00" * 32)
    with pytest.raises(WrongSecret):
        Profile(folder, KeyFile(moved))


def test_without_its_key_file_a_profile_stays_closed(tmp_path: Path) -> None:
    Profile(tmp_path).close()
    (tmp_path / keybox.DEFAULT_FILE).unlink()
    with pytest.raises(ProfileLocked):
        Profile(tmp_path)


def test_the_keyring_holds_what_opens_it_and_nothing_else_does(tmp_path: Path, ring: Ring) -> None:
    Profile(tmp_path, Keyring()).close()
    Profile(tmp_path).close()
    ring.kept.clear()
    with pytest.raises(ProfileLocked, match="does not have its key"):
        Profile(tmp_path)


def test_without_the_package_the_keyring_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ProfileLocked, match=r"nightmail\[keyring\]"):
        Profile(tmp_path, Keyring())


def test_what_protects_it_can_be_changed_without_writing_the_database_again(tmp_path: Path, ring: Ring) -> None:
    profile = Profile(tmp_path)
    write_marker(profile)
    profile.close()
    database = (tmp_path / NAME).read_bytes()
    before: Secret | None = None
    for secret in (HORSE, Passphrase("staple"), Keyring(), Passphrase("battery"), KeyFile()):
        profile = Profile(tmp_path, before)
        profile.keep_by(secret)
        profile.close()
        if isinstance(before, Passphrase):
            with pytest.raises(ProfileLocked):
                Profile(tmp_path, before)
        Profile(tmp_path, secret).close()
        before = secret
    assert (tmp_path / NAME).read_bytes() == database
    assert ring.kept == {}


def test_a_box_that_was_changed_or_is_newer_is_refused(tmp_path: Path) -> None:
    Profile(tmp_path, HORSE).close()
    box = msgspec.json.decode((tmp_path / keybox.NAME).read_bytes())
    for changed, error in (
        ({**box, "version": 2}, ProfileTooNew),
        ({**box, "memory_kib": 1 << 40}, ProfileDamaged),
        ({**box, "memory_kib": 1 << 10}, WrongSecret),
        ({**box, "kind": "nothing"}, ProfileDamaged),
    ):
        (tmp_path / keybox.NAME).write_bytes(msgspec.json.encode(changed))
        with pytest.raises(error):
            Profile(tmp_path, HORSE)


def test_a_key_file_that_is_still_in_use_stays(tmp_path: Path) -> None:
    """However the same file is named; a former one in the folder goes, one elsewhere stays."""
    folder, stick, link = tmp_path / "profile", tmp_path / "stick.key", tmp_path / "link.key"
    Profile(folder).close()
    link.symlink_to(folder / keybox.DEFAULT_FILE)
    for secret in (KeyFile(), KeyFile(str(folder / keybox.DEFAULT_FILE)), KeyFile(str(link)), KeyFile()):
        profile = Profile(folder)
        profile.keep_by(secret)
        profile.close()
        Profile(folder).close()
    for secret, inside in ((KeyFile(str(stick)), False), (KeyFile(str(stick)), False), (KeyFile(), True)):
        profile = Profile(folder)
        profile.keep_by(secret)
        profile.close()
        assert ((folder / keybox.DEFAULT_FILE).exists(), stick.exists()) == (inside, True)
        Profile(folder).close()


def test_the_former_key_file_goes_only_once_the_new_box_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = Profile(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(key_places, "write_durably", fails)
        with pytest.raises(ProfileError):
            profile.keep_by(HORSE)
    profile.close()
    Profile(tmp_path).close()


def fails(path: Path, content: bytes) -> None:
    raise ProfileError(f"{path} cannot be written")


def test_a_box_of_a_key_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    Profile(tmp_path).close()
    box = msgspec.json.decode((tmp_path / keybox.NAME).read_bytes())
    for changed, error in (
        ({"nonce": ""}, ProfileDamaged),
        ({"sealed": ""}, ProfileDamaged),
        ({"path": "\0x"}, ProfileDamaged),
        ({"path": ""}, WrongSecret),
        ({"path": "/dev/zero"}, WrongSecret),
        ({"version": 0}, WrongSecret),
    ):
        (tmp_path / keybox.NAME).write_bytes(msgspec.json.encode({**box, **changed}))
        with pytest.raises(error):
            Profile(tmp_path)
    with pytest.raises(Misused):
        keybox.make_box(tmp_path / "other", KeyFile("\0x"), bytes(32))


def test_a_crash_before_the_database_was_made_leaves_a_profile_that_opens(tmp_path: Path) -> None:
    keybox.make_box(tmp_path, HORSE, bytes(32))
    Profile(tmp_path, HORSE).close()


def test_a_client_says_what_it_lacks_before_it_asks_any_server(tmp_path: Path) -> None:
    async def meet() -> None:
        async with Client(tmp_path, ["ws://127.0.0.1:9"], secret=Passphrase("wrong")):
            raise AssertionError

    Profile(tmp_path, HORSE).close()
    with pytest.raises(WrongSecret):
        asyncio.run(meet())


def test_a_client_changes_its_passphrase_while_it_runs(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            profile = place.profile(tmp_path, "alice")
            async with Client(profile, [place.address]) as alice:
                await alice.keep_by(KeyFile())
            async with Client(profile, [place.address]) as alice:
                await alice.keep_by(HORSE)
            with pytest.raises(ProfileLocked):
                Profile(profile)
            async with Client(profile, [place.address], secret=HORSE) as alice:
                assert alice.identity.handle == "alice"

    asyncio.run(story())
