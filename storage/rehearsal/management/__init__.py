"""Commands that rehearse failures."""
