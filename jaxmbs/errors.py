"""Errors and warnings of the library, worded for the person who has to repair their cause, and outcomes."""

import enum


class ModelError(ValueError):
    """A mechanism, a parameter or an argument that cannot be used; the message names element and remedy.

    >>> try:
    ...     mbs.library.double_pendulum().build().q_slice("elbw")
    ... except mbs.ModelError as error:
    ...     print(error)
    q_slice: no joint named 'elbw'; did you mean 'elbow'?
    """


class ModelWarning(UserWarning):
    """Warns about something that the author of a working mechanism should know; the message says what it is.

    >>> import warnings
    >>> warnings.simplefilter("error", mbs.ModelWarning)  # stop where the library only warns
    """


class Outcome(enum.IntEnum):
    """How a computation ended, as a number that is printed by its name."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str, /) -> str:
        """Format the name, or the number if `spec` ends with "d"."""
        return format(int(self) if spec.endswith("d") else self.name, spec)
