"""jaxmbs: rigid multibody dynamics in JAX, for batches of different mechanisms.

Arguments that mean the same everywhere: `model`, from `Mechanism.build`; q (nq,), coordinates of the joints [m, rad,
quaternions w, x, y, z]; v (nv,), velocities [m/s, rad/s]; a (nv,), accelerations [m/s², rad/s²]; tau (nv,), generalized
forces along v [N, N m]; t, the time [s]; mode, locks and switches from `Model.mode`, None for none. In signatures they are
Coordinates, Rates, Accelerations and GeneralizedForces: arrays of JAX or NumPy or lists of numbers; what comes out has its
axes in brackets, Float[jax.Array, "nv nv"]. Arrays are one instance: `jax.vmap`, or `mbs.jit(fn, in_axes=...)`, makes the
batch. Results have the dtype of q and v. Functions of users take (model, t, q, v) in this order. Errors are ModelError and
name the element and the remedy.
"""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.public import *  # noqa: F403

_lazy(__name__, "absolute", "library", "simulate", "view")  # a command that computes nothing starts without JAX
