"""What goes wrong: a disk that loses what was not synced (`disk`, `disk_vfs`), a store and a log that are shared by a
cluster and answer late, twice or not at all (`wide_store`, `partition`), a client that breaks the protocol
(`lying_client`) and a server that forges what it hands to sealed devices (`lying_server`).
"""
