"""The benchmark bicycle, all printed digits [Meijaard, Papadopoulos, Ruina, Schwab 2007, equations 5.4-5.7 and table 2].

Others print the same numbers: the collection NLEVP the matrices of its problem `bicycle`, to all digits; the documentation
of SymPy's mechanics the eigenvalues at 1 to 5 m/s, to 14 digits; a public C++ test of Whipple's model all of table 2.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

G = 9.81
M = [[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]]
K0 = [[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]]
K2 = [[0, 76.59734589573222], [0, 2.65431523794604]]
C1 = [[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]]
# weave (real, imaginary part), capsize, castering at v = 0, 1, ..., 10 m/s; at rest four real ones
REST = [-5.53094371765393, -3.13164324790656, 3.13164324790656, 5.53094371765393]
WEAVE = [
    (3.52696170990070, 0.80774027519930), (2.68234517512745, 1.68066296590675), (1.70675605663975, 2.31582447384325),
    (0.41325331521125, 3.07910818603206), (-0.77534188219585, 4.46486771378823), (-1.52644486584142, 5.87673060598709),
    (-2.13875644258362, 7.19525913329805), (-2.69348683581097, 8.46037971396931), (-3.21675402252485, 9.69377351531791),
    (-3.72016840437287, 10.90681139476287),
]  # fmt: skip
CAPSIZE = [
    -3.13423125066578, -3.07158645641514, -2.63366137253667, -1.42944427361326, -0.32286642900409, -0.00406690076970,
    0.10268170574766, 0.14327879765713, 0.15790184030917, 0.16105338653172,
]  # fmt: skip
CASTER = [
    -7.11008014637442, -8.67387984831735, -10.35101467245920, -12.15861426576447, -14.07838969279822, -16.08537123098026,
    -18.15788466125262, -20.27940894394569, -22.43788559040858, -24.62459635017404,
]  # fmt: skip
# where two real eigenvalues meet and become the weave, where it stops growing, where capsize begins [m/s]
CRITICAL = [0.68428307889246, 4.29238253634111, 6.02426201538837]
DOUBLE, TURNING = 3.78290405129320, 3.43503384866144j  # eigenvalues at the first two


@pytest.fixture(scope="module")
def straight():
    """Linear equations at rest, at ten speeds and the critical ones, and where a wheel slides; one program."""
    model = mbs.library.bicycle().build()
    rear, front = (mbs.get(model, f"{tyre}.radius") for tyre in ("rear_tyre", "front_tyre"))

    def at(speed, slip):
        v = jnp.zeros(9).at[3].set(1.0).at[7].set(1 / rear).at[8].set(1 / front) * speed
        v = v.at[8].add(slip)
        return mbs.linearize(model, model.neutral(), v, independent=["frame.wx", "steer", "rear_hub"])

    return jax.jit(jax.vmap(at))(jnp.array([*range(11), *CRITICAL, 4.0]), jnp.zeros(15).at[-1].set(0.1))


def test_all_printed_digits_of_the_matrices(straight):
    np.testing.assert_array_equal(straight.status, [mbs.Status.OK] * 14 + [mbs.Status.INCONSISTENT])
    assert straight.speeds[4].tolist() == [0, 6, 7]
    lean, steer = (straight.displacements[4].tolist().index(k) for k in (0, 6))
    K = straight.K[:, :, np.array([lean, steer])]
    for v in range(11):
        np.testing.assert_allclose(straight.M[v, :2, :2], M, rtol=0, atol=5e-14)
        np.testing.assert_allclose(straight.C[v, :2, :2], v * np.array(C1), rtol=0, atol=6e-14 * max(v, 1))
        np.testing.assert_allclose(K[v, :2], G * np.array(K0) + v**2 * np.array(K2), rtol=0, atol=1e-11)
    # nothing depends on where it is, where it heads, how far its wheels have turned
    others = [k for k in range(7) if k not in (lean, steer)]
    assert np.abs(straight.K[:11, :, np.array(others)]).max() < 1e-10


def test_all_printed_digits_of_the_eigenvalues(straight):
    found = np.linalg.eigvals(np.asarray(jax.vmap(lambda x: x.state_space()[0])(straight)))
    for v in range(11):
        moving = [x for x in found[v] if abs(x) > 1e-5]
        assert len(moving) == 4
        if v == 0:
            want = REST
        else:
            weave = complex(*WEAVE[v - 1])
            want = [weave, weave.conjugate(), CAPSIZE[v - 1], CASTER[v - 1]]
        for x in want:
            assert min(abs(x - y) for y in moving) < 2e-13 * max(1, abs(x))


def test_all_printed_digits_of_the_critical_speeds(straight):
    found = np.linalg.eigvals(np.asarray(jax.vmap(lambda x: x.state_space()[0])(straight)))[11:13]
    assert np.abs(found[0] - DOUBLE).min() < 1e-5  # a double eigenvalue is as good as the root of rounding
    assert np.abs(found[1] - TURNING).min() < 1e-12
    lean, steer = (straight.displacements[13].tolist().index(k) for k in (0, 6))
    (a, b), (c, d) = np.asarray(straight.K[13, :2])[:, [lean, steer]]
    np.testing.assert_allclose(a * d, b * c, rtol=1e-12)  # some lean and steer need no torque


def test_answers_to_a_frequency_are_those_of_the_equations_of_second_order(straight):
    """To a torque of the steering, at 3 m/s: what the state space says."""
    at, torque = jax.tree_util.tree_map(lambda x: np.asarray(x[3]), straight), 6
    frequencies = np.array([0.3, 2.0])
    found = np.asarray(at.response(frequencies))[:, :, torque]
    for w, x in zip(2j * np.pi * frequencies, found, strict=True):
        places = np.linalg.solve(w * np.eye(len(at.S)) - at.S, at.T)  # of the displacements, per speed
        speeds = np.linalg.solve(w * at.M + at.C + at.K @ places, at.inputs[:, torque])
        y = places @ speeds
        np.testing.assert_allclose(
            x, np.r_[at.shapes @ y, at.velocities @ speeds + at.carried @ y], rtol=1e-9, atol=1e-12
        )


@pytest.mark.slow
def test_how_the_weave_depends_on_speed_and_a_rider_s_mass():
    """Growth of the weave at 4 and 5 m/s, in both modes, against central differences."""
    model = mbs.library.bicycle().build()
    direction = jnp.zeros(9).at[3].set(1.0).at[7].set(1 / 0.3).at[8].set(1 / 0.35)

    def growth(x):
        changed = mbs.set(model, {"frame.mass": x[1]})
        speeds = ["frame.wx", "steer", "rear_hub"]
        found = mbs.modes(changed, model.neutral(), x[0] * direction, independent=speeds)
        weave = jnp.argmax(found.eigenvalues.imag)
        return found.eigenvalues.real[weave]

    value = jax.jit(growth)
    for x in (jnp.array([4.0, 85.0]), jnp.array([5.0, 70.0])):
        steps = (1e-4, 1e-3)
        want = [(value(x.at[k].add(e)) - value(x.at[k].add(-e))) / (2 * e) for k, e in enumerate(steps)]
        np.testing.assert_allclose(jax.jit(jax.jacfwd(growth))(x), want, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(jax.grad(growth))(x), want, rtol=1e-5)
