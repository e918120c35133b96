"""Access policies, SAS tokens and keys.

Operations: storage/operations/access/. Pages: console/policies/ and console/sas/. SAS itself: storage/domain/sas/.
"""
