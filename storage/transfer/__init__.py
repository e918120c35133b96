"""Imports and exports: files of rows to entities, and entities to files.

Readers and writers of files: storage/tabular/.
"""
