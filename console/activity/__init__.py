"""What was done, in words, and the way back."""
