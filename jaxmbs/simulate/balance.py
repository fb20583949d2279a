"""Whether a run keeps its energy: its error beside what moved between kinetic and potential energy, work and losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

SHARE = 1e-3  # of the energy exchanged, and
SHARE_OF_ALL = 1e-5  # of the largest kinetic energy, is an error that a step may make


class Balance(NamedTuple):
    """The energies of a run, looked at before every step: first, least and most kinetic energy [J]; most work [J]."""

    first: Any
    least: Any
    most: Any
    work: Any

    @staticmethod
    def start(kinetic: Any, work: Any) -> Balance:
        return Balance(kinetic, kinetic, kinetic, work)

    def seen(self, kinetic: Any, work: Any) -> Balance:
        """With the kinetic energy of one more instant, and the work until then."""
        least, most = jnp.minimum(self.least, kinetic), jnp.maximum(self.most, kinetic)
        return Balance(self.first, least, most, jnp.maximum(self.work, jnp.abs(work)))

    @property
    def exchanged(self) -> Any:
        """The energy [J] that moved: what kinetic energy gains or loses, something else loses or gains; and the work."""
        return 2 * jnp.maximum(self.most - self.first, self.first - self.least) + self.work

    def kept(self, error: Any, potential: Any) -> Any:
        """Whether an error of the energy [J] is within rounding and what a step that suits the motion makes: never where the
        energies are not finite.

        potential: at the start.
        """
        rounding = float(jnp.finfo(error.dtype).eps) ** 0.5
        allowed = max(SHARE, rounding) * self.exchanged + max(SHARE_OF_ALL, rounding) * self.most
        allowed = allowed + rounding * jnp.abs(potential)
        return jnp.isfinite(allowed) & (jnp.abs(error) <= allowed)
