"""One bad instance does not change the others: not a bit of them, whatever it meets itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

BAD = {  # restitution, stiffness, drag, speed
    "infinitely many bounces": ((0.1, 0.0, 0.0, 0.0), "UNFINISHED"),
    # through the floor in every step until there is no room for it, or no number: which of them is a matter of rounding
    "stiff beyond the step": ((0.8, 1e7, 0.0, 0.0), "UNFINISHED or NOT_FINITE"),
    "too coarse a step": ((0.8, 4e3, 0.0, 0.0), "COARSE"),
    "divergent": ((0.8, 0.0, -1e3, 9.0), "NOT_FINITE"),
    "not a number": ((0.8, np.nan, 0.0, 0.0), "NOT_FINITE"),
}
ROWS, PLACES = 1100, (0, 333, 700, 1024, 1099)  # enough for loops over rows and for what is left of them


@pytest.fixture(scope="module")
def end():
    """Function of (restitution, stiffness, drag, speed) of one ball on a spring over a floor."""
    mech = mbs.Mechanism("ball", gravity=(0, 0, -9.81))
    mech.add_body("ball", mass=1.5)
    mech.add_joint("z", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_force("spring", mbs.TorsionSpring("z", stiffness=1.0, rest_angle=0.5))
    mech.add_event("floor", mbs.JointReaches("z", 0.0, direction="down"), mbs.Bounce("z", 0.8), repeat=True)
    model = mech.build()

    def end(x):
        changed = mbs.set(model, {"floor.restitution": x[0], "spring.stiffness": x[1]})
        drag = lambda model, t, q, v: -x[2] * v**3  # noqa: E731
        run = mbs.simulate(changed, jnp.full(1, 0.4), x[3:], 1.0, 0.05, tau=drag, save_every=None)
        return run.q[-1], run.v[-1], run.status, run.events.time, run.energy_error[-1]

    return end


def good(n, seed=3):
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(*ends, n) for ends in ((0.7, 0.8), (0.0, 5.0), (0.0, 0.1), (-1.0, 1.0))], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("mapped", ["vmap", "mbs.jit"])
def test_neighbours_of_bad_instances_keep_every_bit(end, mapped):
    run = jax.jit(jax.vmap(end)) if mapped == "vmap" else mbs.jit(end, in_axes=0)
    clean = good(ROWS)
    spoilt = clean.copy()
    for place, (numbers, _) in zip(PLACES, BAD.values(), strict=True):
        spoilt[place] = numbers
    expected, found = (jax.tree.map(np.asarray, run(jnp.asarray(x))) for x in (clean, spoilt))
    others = np.setdiff1d(np.arange(ROWS), PLACES)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a[others], b[others])
    assert not expected[2].any()
    said = [mbs.Status(int(s)).name for s in found[2][list(PLACES)]]
    assert all(status in words for status, (_, words) in zip(said, BAD.values(), strict=True)), said
    if mapped == "mbs.jit":
        alone = jax.jit(end)
        for place in (0, 333, 5, 1050):
            for a, b in zip(alone(jnp.asarray(clean[place])), expected, strict=True):
                np.testing.assert_allclose(b[place], a, rtol=1e-10, atol=1e-12)
