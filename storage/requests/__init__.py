"""The request log: what was refused, failed or slow, and why.

Operations: storage/operations/requests/. Explanations of signatures: storage/inspector/.
"""
