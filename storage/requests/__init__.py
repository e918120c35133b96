"""Request log: refused, failed and slow requests, with explanations."""
