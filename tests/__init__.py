"""Tests of jaxmbs; see README.md for the acceptance matrix."""
