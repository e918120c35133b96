"""Values and filters as people edit them: typed text, pasted rows, CSV, documents, conversions, merges."""
