"""Bugs in who may have which handle."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import devices, handles

from .tools import Bug, edit

HANDLES = ("handles",)

BUGS = (
    Bug("a handle that looks like a claimed one is claimed, too",
        edit(handles.step_handle_claimed, "claim is not None and claim.handle != new.handle", "False"), HANDLES),
    Bug("a closed account lets its look go at once",
        edit(handles.step_handle_claimed, "0 < claim.until <= state.now", "0 < claim.until"), HANDLES),
    Bug("a release counts although the owner has claimed again",
        edit(handles.step_handle_claimed, "HandleClaim(new.handle, new.account, state.now, new.index)",
             "HandleClaim(new.handle, new.account, state.now, new.index, claim.until if claim else 0)"), HANDLES),
    Bug("the handle of a closed account is given to a stranger at once",
        edit(devices.step_registered, " or _is_kept(state, account, new)", ""), HANDLES),
)  # fmt: skip
