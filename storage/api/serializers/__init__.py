"""What goes over the wire: read strictly, written as the OpenAPI document says."""
