"""Arrays with their shapes, for the signatures of what users call and get: `Float[jax.Array, "rows nq"]`.

The shapes are those of one instance, in the letters of the docstring beside them; vmap puts its axes in front. A single
letter has a space before it, so that linters do not look for a variable of that name.
"""

import typing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxtyping import Bool as Bool
    from jaxtyping import Complex as Complex
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
else:  # what they are to type checkers; to import jaxtyping takes time, and nothing asks for it at run time
    Bool = Complex = Float = Int = typing.Annotated
