"""Where devices connect.

Knows:   connections, and what each device has been handed on this one.
Touches: the desk, to submit records and to read mailboxes.
Never:   the fold, the log, or what a message means; nothing about what was pushed is durable.
"""
