"""Messages for later: taken, fired at their time, called out to webhooks, cancelled, listed.

Everything about a schedule happens on its author's shard, in the order of that shard's log.
"""
