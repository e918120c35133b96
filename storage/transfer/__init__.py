"""Imports and exports: files of rows that become entities, and entities that become files.

Readers and writers of files: storage/tabular/.
"""
