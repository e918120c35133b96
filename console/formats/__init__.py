"""Formats of numbers where those of Django are not what readers are used to."""
