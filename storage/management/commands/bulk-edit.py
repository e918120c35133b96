"""The command `bulk-edit`; no package can import a module of this name."""

from storage.management.bulk_editing import Command as Command
