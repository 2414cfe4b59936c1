"""The devices of one account: registering, linking, revoking, moving the account to another device.

registration.py      how a profile becomes a device
link_request.py      the code that a new device shows
device_linking.py    taking it into the account, on the primary device
pairing.py           learning whose it is, on the new device
own_device_list.py   the account's signed list
revocations.py       devices that must be revoked
move_out.py          the account moves away from this device
move_in.py           the account moves to this device
read_sync.py         what was read on one device is read on all
backup_sync.py       the newest backups are known to all
contact_sync.py      contacts and blocks are the same on all
controls.py          the control messages for all of this
"""
