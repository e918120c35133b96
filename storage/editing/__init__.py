"""Values and filters as people edit them: typed text, pasted rows, conversions, merges."""
