"""Undo of activities and of recorded changes.

Pages: console/activity/.
"""
