"""The rows of one machine: one SQLite database, one transaction per checkpoint."""

from .rows import DEFAULTS, FILE_NAME, SqliteRows, SqliteSettings

__all__ = ["DEFAULTS", "FILE_NAME", "SqliteRows", "SqliteSettings"]
