"""What a study asks: its file, and the checked parts of it."""
