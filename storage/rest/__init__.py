"""The frame of the management API, on which the views of all subjects stand."""
