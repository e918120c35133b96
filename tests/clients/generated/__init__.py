"""A client that is generated from the OpenAPI document."""
