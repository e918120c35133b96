"""Tabular files as values, and values as files. Plain Python, and always a stream."""
