"""Base parameters of an arm, identified from noisy torques, with what can be known about them and how accurately.

    python examples/identify_arm.py

The three-link arm of [T 3] moves along sums of sines; its torques are measured with noise. All mass distributions are
unknown. Only some combinations of their 27 numbers affect the torques; these are found, with their standard deviations.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs

NOISE = 0.05  # N m


def measurements(model: mbs.Model, instants: int = 120, seed: int = 0) -> dict[str, np.ndarray]:
    """Angles, rates, accelerations and noisy torques along an exciting motion."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 6.0, instants)
    amplitude, frequency = rng.uniform(0.3, 0.8, (4, model.nv)), rng.uniform(1.0, 6.0, (4, model.nv))
    phase = rng.uniform(0.0, 2 * np.pi, (4, model.nv))
    angle = t[:, None, None] * frequency + phase
    q = (amplitude * np.sin(angle)).sum(axis=1)
    v = (amplitude * frequency * np.cos(angle)).sum(axis=1)
    a = (-amplitude * frequency**2 * np.sin(angle)).sum(axis=1)
    tau = jax.vmap(lambda q, v, a: mbs.inverse_dynamics(model, q, v, a))(*map(jnp.asarray, (q, v, a)))
    return {"q": q, "v": v, "a": a, "tau": np.asarray(tau) + NOISE * rng.standard_normal(tau.shape)}


def identified(truth: mbs.Model, seed: int = 0) -> mbs.design.Design:
    """The parameters that best explain the measured torques, searched for from a wrong initial guess."""
    wrong = {f"body_{k}.com": 1.5 * mbs.get(truth, f"body_{k}.com") for k in (1, 2, 3)}
    bodies = [mbs.design.MassDistribution(f"body_{k}") for k in (1, 2, 3)]
    torques = mbs.design.MeasuredTorques(measurements(truth, seed=seed), noise=NOISE, goal="least")
    return mbs.design.synthesize(mbs.design.Problem(mbs.set(truth, wrong), bodies, [torques], starts=4))


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    design = identified(mbs.library.three_link_arm().build())
    print(design.reason)
    print(design.findings)


if __name__ == "__main__":
    main()
