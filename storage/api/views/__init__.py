"""The view sets: each action reads its request, calls an operation, and serializes the result."""
