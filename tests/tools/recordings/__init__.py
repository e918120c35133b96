"""Replays recorded exchanges of the real services against a server, and compares the answers to the byte.

`python3 -m tests.tools.recordings FILE|FOLDER...`; README.md says where recordings are and how to read the report.
"""
