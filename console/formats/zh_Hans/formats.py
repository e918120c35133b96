"""Simplified Chinese groups digits as CLDR has it: by three, with commas."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
