"""Imports of files: upload, columns, check, and the import itself."""
