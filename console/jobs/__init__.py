"""Jobs: the list, one with its progress, and the tray in the top bar."""
