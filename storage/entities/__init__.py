"""Entities as people read, edit, paste and delete them.

Operations: storage/operations/entities/. Pages also: console/grid/.
"""
