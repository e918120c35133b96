"""Copies between an account of this server and another table service, or from an Azurite file."""
