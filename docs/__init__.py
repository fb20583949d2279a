"""The manual and what makes its pages; see README.md."""
