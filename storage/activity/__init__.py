"""The activity log, and undo.

Operations: storage/operations/activity/ and storage/operations/undo/.
"""
