"""Messages for later: sealed now, delivered by the server at their time, taken back before it.

scheduling.py       what is asked of the server, again until it has answered
sealing.py          sealing for devices that get it later, and for groups
lasting_keys.py     the keys of devices that everybody gets
outcomes.py         what became of each; a delivered one stands in the history
early_receipts.py   receipts for messages whose number this device has not heard yet
scheduled.py        one of them, as an app sees it
"""
