"""Users, members and their tokens."""
