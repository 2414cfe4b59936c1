"""A file whose message came back with a backup can still be saved: what opens it is in the message."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nightmail.client.backup.looking import open_backup
from nightmail.client.backup.restoring import restore
from nightmail.client.limits import ClientLimits
from nightmail.client.profile.profile import Profile
from tests.client.backup.saved import CODE
from tests.client.media.people import LARGE, a_file, message_of, person
from tests.server.rig import Town, serving

NOTHING_BY_ITSELF = ClientLimits(retry_ms_min=20, retry_ms_max=50, backoff_ms_max=50, fetch_bytes=0)


def test_a_restored_message_still_opens_its_file(tmp_path: Path) -> None:
    """The device that had it is lost before it fetched the file; another one of the account comes back with the
    backup."""
    file, laptop = tmp_path / "bob.backup", tmp_path / "laptop"

    async def story(town: Town) -> None:
        async with person(town, tmp_path, "ada") as ada:
            async with person(town, tmp_path, "bob", limits=NOTHING_BY_ITSELF) as bob:
                await (await ada.send_file("bob", a_file(tmp_path), caption="see this")).sent()
                message = await message_of(bob)
                await bob.backups.make(file, CODE)
                await bob.link_here(laptop)
            profile = Profile(laptop, None)
            try:
                restore(profile, open_backup(file, CODE), message.at + 1_000, may_be_older=True)
            finally:
                profile.close()
            async with person(town, tmp_path, "bob", limits=NOTHING_BY_ITSELF, profile="laptop") as bob:
                (restored,) = bob.history("ada")
                assert (restored.id, restored.media) == (message.id, message.media)
                assert (await bob.save_file(restored, tmp_path / "saved")).read_bytes() == LARGE

    with serving(tmp_path / "node", http__registrations_per_minute=0, http__links_per_minute=100) as town:
        asyncio.run(story(town))
