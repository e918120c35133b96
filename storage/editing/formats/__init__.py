"""Formats of numbers, dates and Booleans; each converts its texts to the usual spelling of the type."""
