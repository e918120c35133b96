"""Whole accounts as files, and copies of them.

Pages: console/accounts/.
"""
