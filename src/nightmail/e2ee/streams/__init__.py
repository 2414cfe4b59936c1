"""Sealed streams: media and backups, chunk by chunk."""
