"""The fold of groups.

The group's shard numbers messages and knows who is a member (`chain`, `membership`, `sending`, `receipts`); a member's
shard answers for its account (`accounts`) and files what the group sends it (`filing`).
"""
