"""Request log pages: refused, failed and slow requests, with explanations."""
