"""Views that compare accounts and tables."""
