"""The activity log.

Operations: storage/operations/activity/.
"""
