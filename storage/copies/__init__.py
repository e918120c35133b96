"""Copies from and to other table services.

Operations: storage/operations/remote_copies/. Client: storage/remote/. Pages: console/imports/.
"""
