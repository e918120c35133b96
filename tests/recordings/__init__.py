"""Replays recorded exchanges of the real services against a server, and compares the answers to the byte.

`python3 -m tests.recordings FILE|FOLDER...`; README.md says where recordings are found and how to read the report.
"""
