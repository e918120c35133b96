"""Replicas of the database."""
