"""The console in real Chromium: what its users see, with axe and without errors."""
