"""Command that judges the design of tables."""
