"""The definition of a study: its file, and the checked parts of it."""
