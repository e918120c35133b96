"""What the API answers: each view reads, asks an operation, and writes."""
