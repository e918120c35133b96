"""Access policies, SAS tokens and keys.

SAS itself: storage/domain/sas/.
"""
