"""The official SDKs do all they can against a live server: proof that clients work unchanged."""
