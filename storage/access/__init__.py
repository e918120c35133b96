"""Access policies, SAS tokens and keys.

Pages: console/policies/ and console/sas/. SAS itself: storage/domain/sas/.
"""
