"""The JSON of requests and responses. The OpenAPI document is generated from these serializers too."""
