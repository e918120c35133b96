"""What people type, paste and read: typed text, rows, CSV, documents, conversions and merges."""
