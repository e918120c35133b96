"""Tablero, an Azure Table service over PostgreSQL: its command, and servers for tests."""
