"""Tabular files: streaming readers and writers of values, in plain Python."""
