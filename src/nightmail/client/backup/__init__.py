"""Encrypted backups of a profile: what a person would miss, in one file that only they can open.

forms.py        what is inside, part by part
container.py    the file: a head that wraps the key, and a chain of sealed segments
gathering.py    what goes into a backup
making.py       one backup: whole, or what changed since the last one
secret.py       what opens one
looking.py      opening one: everything is verified before anything is used
restoring.py    putting it into a profile
newest.py       the newest backups that the own devices know of
server_parts.py a backup on the server: its file in parts, each a blob
server_copy.py  bringing it there, fetching it, having it forgotten
schedule.py     what a profile remembers of its backup
automatic.py    backups that a running client makes by itself
"""
