"""Rehearsals of failures, and reports on what clients did."""
