"""Sealing: what only the two ends of a conversation can read. Client side only; no server-side room imports this.

Knows:   published protocols over mainstream primitives, each part in the file that names it.
Never:   reads a clock, draws random bytes by itself, or touches a disk: `now` and `chance` are arguments, states are
         values.

    labels.py        every label                    keys.py       a device's own keys, renewed and deleted
    chance.py        where randomness enters        bundles.py    what it publishes
    curves.py        X25519, Ed25519                pqxdh.py      a secret with a device that sleeps
    kem.py           ML-KEM-1024                    ratchet.py    a new key for every message
    kdf.py           HKDF and the chains            header.py     what stands before a ciphertext
    cipher.py        one message under one key      session.py    both together
    identity.py      who a device is                peers.py      all sessions with a device
    lists.py         which devices an account has   content.py    what a message says
    safety.py        the number people compare      note.py       what is sealed, and its tag
    padding.py, compression.py                      sealing.py    what the client calls
    state.py         stored states, and their forms errors.py     what can go wrong

    groups/          chain.py: which members a group has; sender_keys.py: a chain for each device that writes into it;
                     sealing.py: one ciphertext for all of them
    streams/         stream.py: content of any size, chunk by chunk; padding.py: its size, and where it ends;
                     media.py: the key of a file; backup.py: the key of a backup, and the chain of its segments;
                     recovery_code.py: the words that open one
"""
