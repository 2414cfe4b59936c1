"""A profile folder and the secrets that protect it.

profile.py      the folder: lock, key, database
protection.py   what can protect the key: a passphrase, a key file, the system's keyring
keybox.py       the file that holds the sealed key
key_places.py   key files and the keyring
pin.py          what the server is told instead of a PIN
"""
