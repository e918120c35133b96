"""The pages of rehearsals, and of sets of rules."""
