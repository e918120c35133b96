"""The request log: what was refused, failed or slow, and why.

Explanations of signatures: storage/inspector/.
"""
