"""Faults put into the code of writes on purpose, to see which tests notice them."""
