"""The manual, and the code that generates its pages; see README.md."""
