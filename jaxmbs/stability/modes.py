"""Modes: how a mechanism vibrates, and whether it is stable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics import integrate
from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vector
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.given import Coordinates, GeneralizedForces, Law, Number, Rates
from jaxmbs.model.shapes import Complex, Float, Int
from jaxmbs.simulate import Events, Solution
from jaxmbs.simulate.solution import Steps
from jaxmbs.stability.eigensolver import eigen
from jaxmbs.stability.linearize import Linearization, linearize


class Modes(NamedTuple):
    """Modes of small motions, x(t) = Re(shape exp(eigenvalue t)), ordered by the size of their eigenvalues.

    eigenvalues (k,) [1/s], complex, both of each conjugate pair, positive imaginary part first; k counts displacements
    and speeds: a vibration has two eigenvalues, a coordinate on which nothing depends has one or two zeros. frequency
    (k,) [Hz]: that of the oscillation; damping (k,): fraction of critical damping, -Re/|eigenvalue|, negative for a
    growing mode. shapes: {joint: (k, nv of the joint)}, complex displacements, of length 1 over all joints together.
    energy: {body: (k,)}, each body's share of the kinetic energy. largest_real_part [1/s]: that of all eigenvalues; the
    motion is unstable if it exceeds `margin` [1/s], the size that rounding may give to a repeated zero eigenvalue.
    status: int32, as that of `linearize`.

    >>> modes = mbs.modes(mbs.library.double_pendulum().build(), [0.0, 0.0])
    >>> print(modes.frequency.round(3), bool(modes.largest_real_part <= modes.margin))
    [0.382 0.382 0.921 0.921] True
    """

    eigenvalues: Complex[jax.Array, " k"]
    frequency: Float[jax.Array, " k"]
    damping: Float[jax.Array, " k"]
    shapes: dict[str, Complex[jax.Array, "k freedoms"]]
    energy: dict[str, Float[jax.Array, " k"]]
    largest_real_part: Float[jax.Array, ""]
    margin: Float[jax.Array, ""]
    status: Int[jax.Array, ""]

    def motion(
        self,
        model: Model,
        q: Coordinates,
        number: int,
        amplitude: float = 0.1,
        *,
        duration: float | None = None,
        rows: int = 101,
    ) -> Solution:
        """One mode about q (nq,) as a `Solution`, for `mbs.animate`.

        number: that of the mode, from 0; amplitude: that of the coordinate that moves most [m, rad]; duration [s]: None
        for two periods, or one second if the mode does not oscillate; rows: number of instants. The motion is exact to
        first order, so that loops open in proportion to the square of the amplitude. Raises ModelError for a number
        that no mode has.
        """
        value = np.asarray(self.eigenvalues)
        if value.ndim != 1 or not 0 <= number < len(value):
            raise ModelError(f"motion: no mode {number!r}; pass one of 0 to {value.shape[-1] - 1}, for one instance")
        shape = np.concatenate([np.asarray(self.shapes[name])[number] for name in model.joint_names])
        shape = shape * amplitude / max(np.abs(shape).max(initial=0.0), 1e-300)
        turn = abs(value[number].imag)
        swings = turn > 1e-6 * abs(value[number])
        end = duration or (4 * math.pi / turn if swings else 1.0)
        dtype = jnp.asarray(q, float).dtype
        t = np.linspace(0.0, end, rows)
        waves = np.exp(value[number] * t)[:, None] * shape[None]
        moves = jnp.asarray(waves.real, dtype)
        place = jax.vmap(lambda dx: integrate(model, jnp.asarray(q, dtype), dx))(moves)
        none, zero = jnp.zeros(rows, dtype), jnp.zeros((), jnp.int32)
        rates = jnp.asarray((value[number] * waves).real, dtype)
        events = Events.none(0, end, dtype)
        return Solution(
            jnp.asarray(t, dtype),
            place,
            rates,
            None,
            events,
            zero,
            none,
            none[0],
            none,
            1 + none,
            None,
            Steps(zero, zero),
        )


def modes(
    model: Model,
    q: Coordinates,
    v: Rates | None = None,
    tau: GeneralizedForces | Law | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    fixed: Iterable[str] = (),
    independent: Iterable[str] | None = None,
) -> Modes:
    """Eigenvalues, shapes, damping and energy of the small motions about rest or a steady motion: `Modes`.

    q (nq,), v (nv,), tau (nv,), fixed, independent: as for `linearize`, whose equations are used. Simple eigenvalues and
    their shapes have exact derivatives in both modes; those of repeated ones (symmetric mechanisms, rigid motions) are not
    finite or have no meaning, except for sums over the repetitions. Raises ModelError as `linearize` does.

    >>> model = mbs.library.beam(8, stiffness=25.0, mass=2.0).build()
    >>> modes = mbs.modes(model, model.neutral())
    >>> print(modes.frequency[::2][:2].round(2), modes.shapes["hinge_1"].shape)
    [ 1.99 12.55] (16, 1)
    """
    linear = linearize(model, q, v, tau, t=t, mode=mode, fixed=fixed, independent=independent)
    return _modes(model, linear, q, t)


@compiles_itself()
def _modes(model: Model, linear: Linearization, q: Any, t: Any) -> Modes:
    A = linear.state_space()[0]
    n = linear.K.shape[1]
    values, right, _ = eigen(A)
    states = right.T
    # even a mode of speeds alone has a displacement, however small
    x = states[:, :n] @ linear.shapes.T
    size = jnp.linalg.norm(jax.lax.stop_gradient(x), axis=1, keepdims=True)
    v = states[:, :n] @ linear.carried.T + states[:, n:] @ linear.velocities.T
    share = _shares(model, vector(model, "q", q, model.nq, x.real.dtype), t, v)
    x = x / jnp.where(size > 0, jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, 1, keepdims=True) + (size == 0)), 1.0)
    large = jnp.abs(jax.lax.stop_gradient(values))
    eps = float(jnp.finfo(A.dtype).eps)
    return Modes(
        eigenvalues=values,
        frequency=jnp.abs(values.imag) / (2 * jnp.pi),
        damping=-values.real / jnp.where(large > 0, _size(values), 1.0),
        shapes={name: x[:, model.v_slice(name)] for name in model.joint_names},
        energy=dict(zip(model.body_names, share.T, strict=True)),
        largest_real_part=jnp.max(values.real),
        margin=100 * eps**0.5 * (1 + jnp.max(large)),
        status=linear.status,
    )


def _size(x: Any) -> Any:
    """Absolute values, with derivatives of zero at zero."""
    square = x.real**2 + x.imag**2
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _shares(model: Model, q: Any, t: Any, v: Any) -> Any:
    """The shares (k, bodies) of the bodies in the kinetic energy at complex velocities (k, nv), over a period."""

    def energy(v: Any) -> Any:
        tree = Tree(model, q.dtype)
        given = (q, v) if tree.rolled else (list(q), list(v))
        return tree.vector(energies.kinetic_by_link(State(tree, *given, t, None)))

    both = jax.vmap(energy)(v.real) + jax.vmap(energy)(v.imag)
    whole = jnp.sum(both, axis=1, keepdims=True)
    return both / jnp.where(whole > 0, whole, 1.0)
