"""jaxmbs: rigid multibody dynamics in JAX, for batches of different mechanisms.

These arguments mean the same everywhere: `model`, from `Mechanism.build`; q (nq,), coordinates of the joints [m, rad,
quaternions w, x, y, z]; v (nv,), velocities [m/s, rad/s]; a (nv,), accelerations [m/s², rad/s²]; tau (nv,),
generalized forces along v [N, N m]; t, the time [s]; mode, locks and switches from `Model.mode`, None for none. In
signatures q, v, a and tau have the types Coordinates, Rates, Accelerations and GeneralizedForces: JAX or NumPy arrays
or lists of numbers. The type of a result names its axes: Float[jax.Array, "nv nv"]. Arrays describe one instance;
`jax.vmap`, or `mbs.jit(fn, in_axes=...)`, computes a batch. Results have the dtype of q and v. User-defined functions
take (model, t, q, v) in this order. Errors are raised as ModelError, whose message names the element and the remedy.
"""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.public import *  # noqa: F403

_lazy(__name__, "absolute", "library", "simulate", "view")  # a command that computes nothing starts without JAX
