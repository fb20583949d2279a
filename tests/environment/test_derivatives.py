"""Derivatives of the acceleration in air, along all that it depends on, against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.environment.test_environment import flying, glider

TABLE = mbs.TabulatedAtmosphere(height=(0.0, 2e3, 5e3), density=(1.2, 1.0, 0.7), sound=(340.0, 333.0, 320.0))
SHEAR = mbs.Wind(height=(0.0, 2e3, 4e3), east=(3.0, 9.0, 20.0), north=(-2.0, 1.0, 5.0))
CASES = {
    "standard air over a turning planet": (
        {"atmosphere": mbs.StandardAtmosphere(), "wind": SHEAR, "planet": mbs.Earth()},
        ("planet.mu", "planet.zonals", "planet.rate", "planet.flattening", "planet.radius", "wind.north"),
    ),
    "exponential air and an attracting planet with its own axes": (
        {
            "atmosphere": mbs.ExponentialAtmosphere(),
            "planet": mbs.Planet(4e14, 6e6, flattening=0.003, center=(3e5, -2e5, 1e5), attitude=mbs.rotation("x", 0.3)),
        },
        (
            "planet.center",
            "atmosphere.density",
            "atmosphere.scale_height",
            "air.coefficients.mach",
            "air.coefficients.alpha",
        ),
    ),
    "a table of air over a plane": (
        {"atmosphere": TABLE, "wind": SHEAR},
        ("atmosphere.density", "atmosphere.sound", "wind.east"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_along_pose_motion_tables_and_planet(case):
    around, names = CASES[case]
    model = glider(around=around)[0].build()
    q, v = flying()
    if "planet" in around:  # 3 km above the ground, with the velocity of the air there
        q[:3] = [6_381_137.0, 20.0, 3000.0]
        R = np.asarray(mbs.body_poses(model, q)["glider"].rotation)
        v[3:] += R.T @ [0.0, 7.292115e-5 * q[0], 0.0]
    names = ("air.coefficients.axial", "air.reference", *names)
    start = [np.asarray(mbs.get(model, name), float) for name in names]
    rng = np.random.default_rng(1)
    shares = [1e-3 if name == "planet.radius" else 1.0 for name in names]  # so that no breakpoint of a table is passed
    along = [share * x * rng.normal(size=x.shape) for share, x in zip(shares, start, strict=True)]
    dq, dv = rng.normal(size=(2, 6))
    dq[3:] *= 100.0

    def a(s):
        changed = mbs.set(model, {n: x + s * d for n, x, d in zip(names, start, along, strict=True)})
        return mbs.forward_dynamics(changed, mbs.integrate(model, q, s * dq), v + s * dv)

    a = jax.jit(a)
    h = 1e-4
    fine, rough = ((a(k * h) - a(-k * h)) / (2 * k * h) for k in (1.0, 2.0))
    wanted = (4 * fine - rough) / 3
    assert relative(jax.jit(jax.jacfwd(a))(0.0), wanted) < 1e-7
    assert relative(jax.jit(jax.jacrev(a))(jnp.asarray(0.0)), wanted) < 1e-7
