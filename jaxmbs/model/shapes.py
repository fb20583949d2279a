"""Arrays with their shapes, for the signatures of public functions and their results: `Float[jax.Array, "rows nq"]`.

The shapes are those of one instance and use the letters of the docstring; vmap adds its axes in front. A single name
has a space before it, so that linters do not look for a variable of that name.
"""

import typing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxtyping import Bool as Bool
    from jaxtyping import Complex as Complex
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
else:  # only type checkers need jaxtyping: importing it takes time, and nothing uses it at run time
    Bool = Complex = Float = Int = typing.Annotated
