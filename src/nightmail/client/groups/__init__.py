"""Groups: who is in them, by signed changes; sealed once for everybody; nothing believed because the server says it.

group.py          a group, as an app sees it
known_groups.py   what this device knows of each group
following.py      the chain of changes, verified
welcomes.py       where a newcomer begins
audience.py       the devices that may read
sender_keys.py    this device's own chain, and who holds it
sealing.py        what is sent: one ciphertext for everybody, or envelopes for single devices
opening.py        what arrives
waiting.py        entries that cannot be opened yet, and asking for what is missing
names.py          name and picture
changes.py        what the person changes
log.py            large groups: fetched from the group's log
seen_by.py        who has a message, who has read it
controls.py       the control messages for all of this
parts.py          all of it, built and connected
"""
