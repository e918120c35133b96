"""Entities as people read, edit, paste and delete them.

Pages also: console/grid/.
"""
