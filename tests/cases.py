"""A dozen mechanisms that are compiled, with their mirrors and a few states; and how errors are measured."""

import functools
from dataclasses import dataclass

import jax
import numpy as np

from tests.mechanisms import Description, build, random_mechanism, random_q
from tests.mirrors import MuJoCo, Pinocchio

# seed, number of bodies
DOZEN = tuple(enumerate((1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12), start=100))
FEW = DOZEN[2:8:2]


@dataclass(frozen=True)
class Case:
    """Coordinates in the order of the model; q, v, a have four rows, tau belongs to a."""

    mechanism: Description
    model: object
    pinocchio: Pinocchio
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray

    @functools.cached_property
    def mujoco(self):
        return MuJoCo(self.mechanism)

    @property
    def has_screws(self):
        return any(j.motion == "Helical" for j in self.mechanism.joints)

    def rows(self):
        return zip(self.q, self.v, self.a, self.tau, strict=True)


@functools.cache
def case(seed, n=None, states=4, **options):
    mechanism = random_mechanism(seed, n, **options)
    model = build(mechanism)
    mechanism = mechanism.ordered(model.joint_names)
    rng = np.random.default_rng([seed, 1])
    q = np.stack([random_q(mechanism, rng) for _ in range(states)])
    v, a = rng.normal(size=(2, states, mechanism.nv))
    pinocchio = Pinocchio(mechanism)
    tau = np.stack([pinocchio.inverse_dynamics(*row) for row in zip(q, v, a, strict=True)])
    return Case(mechanism, model, pinocchio, q, v, a, tau)


def relative(got, want):
    """Largest difference over the largest magnitude (at least 1); infinite for other shapes, NaN or infinities."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    if got.shape != want.shape or not np.all(np.isfinite(got)):
        return np.inf
    return float(np.max(np.abs(got - want), initial=0.0) / max(1.0, np.max(np.abs(want), initial=0.0)))


def compilations(call):
    """How many programs XLA made for the call."""
    made = []

    def count(event, duration, **_):
        made.append(event) if "backend_compile" in event else None

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        call()
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
    return len(made)
