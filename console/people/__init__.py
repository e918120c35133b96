"""Who may come in, how, and as whom."""
