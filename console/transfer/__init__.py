"""Imports of files: upload, mapping, check and execution."""
