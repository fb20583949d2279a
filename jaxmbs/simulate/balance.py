"""Energy balance of a run: compares the energy error with the energy exchanged, which includes the work."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

SHARE = 1e-3  # allowed energy error as a fraction of the energy exchanged
SHARE_OF_ALL = 1e-5  # this fraction of the largest kinetic energy is added to it


class Balance(NamedTuple):
    """Energies of a run, sampled before every step: first, least and most kinetic energy [J]; largest |work| [J]."""

    first: Any
    least: Any
    most: Any
    work: Any

    @staticmethod
    def start(kinetic: Any, work: Any) -> Balance:
        return Balance(kinetic, kinetic, kinetic, work)

    def seen(self, kinetic: Any, work: Any) -> Balance:
        """The balance updated with the kinetic energy at one more instant, and the work until then."""
        least, most = jnp.minimum(self.least, kinetic), jnp.maximum(self.most, kinetic)
        return Balance(self.first, least, most, jnp.maximum(self.work, jnp.abs(work)))

    @property
    def exchanged(self) -> Any:
        """The energy exchanged [J]: the largest |work|, plus the largest change of the kinetic energy since the start,
        counted twice because energy of another form changes by the same amount."""
        return 2 * jnp.maximum(self.most - self.first, self.first - self.least) + self.work

    def holds(self, error: Any, potential: Any) -> Any:
        """Whether an energy error [J] is as small as it is with steps of a suitable length, apart from rounding; False
        if the energies are not finite.

        potential: potential energy [J] at the start.
        """
        rounding = float(jnp.finfo(error.dtype).eps) ** 0.5
        allowed = max(SHARE, rounding) * self.exchanged + max(SHARE_OF_ALL, rounding) * self.most
        allowed = allowed + rounding * jnp.abs(potential)
        return jnp.isfinite(allowed) & (jnp.abs(error) <= allowed)
