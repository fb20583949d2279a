"""Errors and warnings of the library, worded for the person who has to mend their cause."""


class ModelError(ValueError):
    """A mechanism, a parameter or an argument that cannot be used; the message names element and remedy."""


class ModelWarning(UserWarning):
    """A mechanism that works but has something its author should know; the message names it."""
