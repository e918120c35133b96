"""Digit grouping of Simplified Chinese as in CLDR: by three, with commas."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
