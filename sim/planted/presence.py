# pyright: reportPrivateUsage=false
"""Bugs in presence and typing: who counts as online, who is told, how often, and what is left after a restart."""

from __future__ import annotations

from nightmail.engine.presence import EmbeddedPresence
from nightmail.engine.sqlite.presence_file import PresenceFile
from nightmail.gateway import visibility
from nightmail.gateway.presence import ConnectionPresence, NodePresence
from nightmail.gateway.typing_limits import TypingLimits
from nightmail.gateway.typing_relay import TypingRelay
from nightmail.gateway.watchers import Watchers

from .tools import Bug, edit, edit_method

PRESENCE = ("presence",)
DOORS = ("tests/gateway/test_presence.py", "tests/gateway/test_typing_relay.py", "tests/engine/test_presence.py")

BUGS = (
    Bug("a device in the background counts as online",
        edit_method(ConnectionPresence, "beat", "if self.is_in_foreground:", "if True:"), PRESENCE, DOORS),
    Bug("an account is offline when one of its devices leaves",
        edit_method(EmbeddedPresence, "leave",
                    "if left := self._online[account] - 1:\n        self._online[account] = left\n    else:\n"
                    "        del self._online[account]\n        self._changed(account)",
                    "self._online.pop(account, None)\n    self._changed(account)"), PRESENCE, DOORS),
    Bug("a connection that ends leaves its device online",
        edit_method(NodePresence, "remove", "self.presence.leave(connection.session.device)", "pass"), PRESENCE, DOORS),
    Bug("a device that is not heard stays online",
        edit_method(EmbeddedPresence, "tick", "if now - beat < self._settings.lifetime_ms:", "if True:"), PRESENCE,
        DOORS),
    Bug("who hides sees others all the same",
        edit(visibility.may_see, "Audience.NOBODY in (audience, watcher_audience)", "audience is Audience.NOBODY"),
        PRESENCE, DOORS),
    Bug("a blocked account goes on seeing presence",
        edit(visibility.may_see, "watcher in row.blocked or ", ""), PRESENCE, DOORS),
    Bug("contacts are everyone",
        edit(visibility.may_see, "audience is Audience.EVERYONE or knows(known, watcher)", "True"), PRESENCE, DOORS),
    Bug("watchers are not looked at again after a block",
        edit_method(Watchers, "tick", "if now - watched.looked_at < self._limits.recheck_ms:", "if True:"), PRESENCE,
        DOORS),
    Bug("who begins to hide goes on seeing those it watches",
        edit_method(NodePresence, "_look_again", "for device in row.devices if row else ():", "for device in ():"),
        PRESENCE, DOORS),
    Bug("watchers are told of every change at once",
        edit_method(Watchers, "_look", "False, now + self._limits.tell_ms", "False, now"), PRESENCE, DOORS),
    Bug("watchers are not told what changed within their second",
        edit_method(Watchers, "changed", "self._shared.wheel.add(watched.next_at, partial(self._look, account))",
                    "watched.is_due = False"), PRESENCE, DOORS),
    Bug("watchers are told what they know",
        edit_method(Watchers, "_tell", "if person != told:", "if True:"), PRESENCE,
        DOORS),
    Bug("typing is limited for each connection",
        edit_method(ConnectionPresence, "take", "node.typing.take(session.device, item.to, now)",
                    "limits = vars(node).setdefault('by_connection', {})\n"
                    "            node.typing._said = limits.setdefault(session.device, TypingLimits(3_000))\n"
                    "            node.typing.take(session.device, item.to, now)", TypingLimits=TypingLimits),
        PRESENCE, DOORS),
    Bug("typing is passed on from strangers and blocked people",
        edit_method(TypingRelay, "_pass_on", " and account not in row.blocked and knows(known, account)", ""), PRESENCE,
        DOORS),
    Bug("typing is passed on to devices in the background",
        edit_method(TypingRelay, "_tell", " and reader.is_in_foreground", ""), PRESENCE, DOORS),
    Bug("last seen is lost on restart",
        edit_method(PresenceFile, "put_last_seen", "people.items(),", "(),"), PRESENCE, DOORS),
    Bug("who may see presence is lost on restart",
        edit_method(PresenceFile, "put_audience", "(account, int(audience)),", "(account, 0),"), PRESENCE, DOORS),
)  # fmt: skip
