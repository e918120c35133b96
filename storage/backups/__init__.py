"""Backups and the archive of the database's log.

Code: storage/server/backups/ and storage/server/archive/.
"""
