"""Every force element against its closed form, and the energy balance of each in a moving mechanism."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.cases import relative


def ball(mass=2.0, gravity=(0, 0, 0), **elements):
    """One free body, inertia (0.4, 0.5, 0.6), with force elements."""
    mech = mbs.Mechanism("ball", gravity=gravity)
    mech.add_body("b", mass, inertia=(0.4, 0.5, 0.6))
    mech.add_joint("free", mbs.Free(), "world", "b")
    for name, element in elements.items():
        mech.add_force(name, element)
    return mech.build()


def hinge(**elements):
    """A wheel on a hinge about z with moment of inertia 2 about it."""
    mech = mbs.Mechanism("wheel")
    mech.add_body("wheel", 1.0, inertia=(1.0, 1.0, 2.0))
    mech.add_joint("axle", mbs.Revolute((0, 0, 1)), "world", "wheel")
    for name, element in elements.items():
        mech.add_force(name, element)
    return mech.build()


def pair(**elements):
    """Two free bodies of masses 2 and 3 kg with large inertia."""
    mech = mbs.Mechanism("pair")
    for name, mass in (("a", 2.0), ("b", 3.0)):
        mech.add_body(name, mass, inertia=(1.0, 1.2, 1.4))
        mech.add_joint(f"free {name}", mbs.Free(), "world", name)
    for name, element in elements.items():
        mech.add_force(name, element)
    return mech.build()


TURN = np.array([np.cos(0.4), 0, 0, np.sin(0.4)])  # 0.8 rad about z
ROTATION = np.array([[np.cos(0.8), -np.sin(0.8), 0], [np.sin(0.8), np.cos(0.8), 0], [0, 0, 1]])
REST = np.zeros(6)


def wrench(model, q, v=REST, **time):
    """(moment, force) on the one free body in its own axes about its centre of mass; gyroscopic terms cancelled."""
    plain = ball()
    return -np.asarray(mbs.bias_forces(model, q, v, **time)) + np.asarray(mbs.bias_forces(plain, q, v))


def at(position=(0, 0, 0), turn=(1, 0, 0, 0)):
    return np.array([*position, *turn], float)


def test_uniform_gravity():
    assert relative(wrench(ball(gravity=(0, 3, -9)), at((1, 2, 3), TURN)), [0, 0, 0, *ROTATION.T @ (0, 6, -18)]) < 1e-14


def test_linear_spring():
    """Along the line of the points: stiffness times stretch plus damping times its rate; moment by the lever."""
    model = ball(s=mbs.LinearSpring("world", "b", (0, 0, 0), (0, 1, 0), stiffness=10.0, rest_length=2.0, damping=3.0))
    got = wrench(model, at((3, 3, 0)), np.array([0, 0, 0, 0.5, 0, 0]))
    unit = np.array([0.6, 0.8, 0])  # to the point (3, 4, 0), length 5
    force = -(10.0 * 3 + 3.0 * 0.5 * 0.6) * unit
    assert relative(got, [*np.cross((0, 1, 0), force), *force]) < 1e-14
    assert mbs.energy(model, at((3, 3, 0)), REST)[1] == pytest.approx(45.0)


def test_linear_spring_of_zero_length_is_finite():
    """No direction, no force from the rest length; without rest length it stays a smooth linear spring."""
    for rest in (0.0, 2.0):
        model = ball(s=mbs.LinearSpring("world", "b", stiffness=10.0, rest_length=rest, damping=1.0))
        f = jax.jit(lambda q, v, m=model: mbs.forward_dynamics(m, q, v))
        assert relative(f(at(), REST), REST) == 0
        for mode in (jax.jacfwd, jax.jacrev):
            slope = np.asarray(mode(f)(at(), REST))
            assert np.all(np.isfinite(slope))
            if rest == 0:
                assert relative(slope[3:, :3], -5.0 * np.eye(3)) < 1e-14


@pytest.mark.parametrize("spring", [
    lambda joint: mbs.JointSpring(joint, stiffness=4.0, damping=0.5, rest_coordinate=0.3),
    lambda joint: mbs.TorsionSpring(joint, stiffness=4.0, damping=0.5, rest_angle=0.3),  # the older name
])  # fmt: skip
def test_joint_spring(spring):
    """On a hinge with a moment of inertia of 2 kg m², and on a slider of 2 kg; stiffness, damping, rest in this order."""
    mech = mbs.Mechanism("cart")
    mech.add_body("cart", 2.0)
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_force("coil", spring("rail"))
    assert spring("rail") == type(spring("rail"))("rail", 4.0, 0.5, 0.3)
    for model in (hinge(coil=spring("axle")), mech.build()):
        a = mbs.forward_dynamics(model, np.array([1.0]), np.array([2.0]))
        assert relative(a, [(-4.0 * 0.7 - 0.5 * 2) / 2]) < 1e-14
        assert mbs.energy(model, np.array([1.0]), np.zeros(1))[1] == pytest.approx(2 * 0.49)


def test_damper_acts_on_every_degree_of_freedom():
    v = np.array([1.0, 2, 3, 4, 5, 6])
    assert relative(wrench(ball(d=mbs.Damper("free", 0.7)), at(turn=TURN), v), -0.7 * v) < 1e-14


def test_bushing_is_linear_in_its_frame():
    pose = mbs.Pose((0.5, 0, 0), TURN)
    k, c, kr, cr = np.array([10.0, 20, 30]), np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([0.4, 0.5, 0.6])
    model = ball(mount=mbs.Bushing("world", "b", pose, mbs.Pose(), tuple(k), tuple(kr), tuple(c), tuple(cr)))
    shift, speed = np.array([0.02, -0.01, 0.03]), np.array([0.1, 0.3, -0.2])
    q = at(np.array([0.5, 0, 0]) + ROTATION @ shift, TURN)
    got = wrench(model, q, np.array([0, 0, 0, *speed]))
    assert relative(got, [0, 0, 0, *(-k * shift - c * speed)]) < 1e-13
    for axis in range(3):
        spin, e = np.zeros(6), np.eye(3)[axis]
        spin[axis] = 0.7
        turned = at((0.5, 0, 0), _product(TURN, [np.cos(0.05), *(np.sin(0.05) * e)]))
        moment = -kr[axis] * np.sin(0.1) * e - 0.7 * cr[axis] * e
        assert relative(wrench(model, turned, spin), [*moment, 0, 0, 0]) < 1e-13


def _product(a, b):
    from tests.mechanisms import quaternion_product

    return quaternion_product(np.asarray(a), np.asarray(b))


def push(s, rate=0.0, t=0.0, **options):
    """Force of a pusher along x on body b, and on body a, at extension s."""
    arguments = {"stiffness": 100.0, "preload": 50.0, "stroke": 0.3} | options
    model = pair(p=mbs.Pusher("a", "b", (0.2, 0, 0), (-0.1, 0, 0), (1, 0, 0), **arguments))
    q = np.concatenate([at(), at((0.3 + s, 0, 0))])
    v = np.zeros(12)
    v[model.v_slice("free b").start + 3] = rate
    got = -np.asarray(mbs.bias_forces(model, q, v, t=t))
    assert relative(got[3:6], -got[9:12]) < 1e-14  # action and reaction
    assert relative(np.delete(got, [3, 9]), np.zeros(10)) < 1e-14
    return got[9]


def test_pusher_pushes_over_its_stroke():
    assert push(0.0) == pytest.approx(50.0)
    assert push(0.1) == pytest.approx(40.0)
    assert push(0.2999) == pytest.approx(50 - 29.99)
    assert push(0.3001) == 0
    assert push(5.0) == 0


def test_pusher_never_pulls():
    assert push(0.4, stroke=1.0) == pytest.approx(10.0)
    assert push(0.6, stroke=1.0) == 0


def test_pusher_delay():
    assert push(0.1, t=0.007, delay=0.008) == 0
    assert push(0.1, t=0.008, delay=0.008) == pytest.approx(40.0)


def test_pusher_friction_opposes_the_rod_but_cannot_pull():
    assert push(0.1, rate=1.0, friction=15.0) == pytest.approx(25.0)
    assert push(0.1, rate=1.0, friction=100.0) == 0
    assert push(0.1, rate=0.0, friction=15.0) == pytest.approx(40.0)


def test_pusher_friction_grows_over_a_hundredth_of_a_metre_per_second():
    for rate in (-0.02, 0.005, 0.01, 0.03):
        assert push(0.1, rate=rate, friction=15.0) == pytest.approx(40 - 15 * np.tanh(rate / 0.01), rel=1e-12)


def stored(s, **options):
    """Potential energy of a pusher at extension s."""
    arguments = {"stiffness": 100.0, "preload": 50.0, "stroke": 0.3} | options
    model = pair(p=mbs.Pusher("a", "b", (0.2, 0, 0), (-0.1, 0, 0), (1, 0, 0), **arguments))
    return float(mbs.energy(model, np.concatenate([at(), at((0.3 + s, 0, 0))]), np.zeros(12))[1])


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("options", "end"), [({}, 0.3), ({"stroke": 0.9}, 0.5), ({"stiffness": 0.0}, 0.3), ({"friction": 9.0}, 0.3)]
)
def test_pusher_stores_the_work_that_its_spring_still_has_to_do(options, end):
    """The force integrated to where it ends: at the stroke, or where the spring is slack."""
    k = options.get("stiffness", 100.0)
    for s in (-0.05, 0.0, 0.1, 0.29):
        assert stored(s, **options) == pytest.approx((50 * end - k * end**2 / 2) - (50 * s - k * s**2 / 2), rel=1e-12)
    assert stored(end + 0.001, **options) == 0 == stored(5.0, **options)


def test_oblique_pusher_leaves_the_momentum_alone():
    """Its two forces have one line of action, in any position of the bodies."""
    direction = (0.6, 0.0, 0.8)
    model = pair(p=mbs.Pusher("a", "b", (0, 0.3, 0.1), (0.2, 0, 0), direction, 10.0, 50.0, 2.0))
    q = np.concatenate([at((0.1, 0.2, 0.3), TURN), at((0.5, -0.1, 0.4), (0.5, 0.5, 0.5, 0.5))])
    a = mbs.forward_dynamics(model, q, np.zeros(12))
    angular, linear = mbs.momentum(model, q, np.asarray(a))  # from rest, momentum changes as it would be with v = a
    assert np.abs(np.asarray(a)).max() > 1
    assert relative(np.concatenate([angular, linear]), np.zeros(6)) < 1e-13


def test_thruster_follows_its_profile():
    model = ball(t=mbs.Thruster("b", (0, 1, 0), (1, 0, 0), 8.0, times=(1.0, 2.0, 4.0), values=(0.5, 1.0, 0.0)))
    for t, level in ((0.0, 0.5), (1.0, 0.5), (1.5, 0.75), (2.0, 1.0), (3.0, 0.5), (4.0, 0.0), (9.0, 0.0)):
        assert relative(wrench(model, at((1, 2, 3), TURN), t=t), 8 * level * np.array([0, 0, -1, 1, 0, 0])) < 1e-14


def test_external_generalized_force():
    def fn(model, t, q, v):
        return jnp.arange(6.0) * t + v - q[0]

    v = np.linspace(0, 1, 6)
    assert relative(wrench(ball(e=mbs.External(fn)), at((2, 0, 0)), v, t=3.0), 3 * np.arange(6.0) + v - 2) < 1e-14


def test_external_wrench_on_a_body_is_in_world_axes():
    def fn(model, t, q, v):
        return jnp.array([0.0, 0, 1, 0, 2, 0])

    model = ball(e=mbs.External(fn, body="b", point=(1, 0, 0)))
    lever = ROTATION @ (1, 0, 0)
    moment = np.array([0, 0, 1]) + np.cross(lever, (0, 2, 0))
    assert relative(wrench(model, at((5, 5, 5), TURN)), [*ROTATION.T @ moment, *ROTATION.T @ (0, 2, 0)]) < 1e-14


PLANE = mbs.Plane((0, 0, 1), (0, 0, 1))
SURFACES = {
    # surface, a point 0.01 inside, outward normal there
    "plane": (PLANE, (3, 2, 0.99), (0, 0, 1)),
    "sphere": (mbs.Sphere((1, 0, 0), 2.0), (1, 1.2 * 0.995, 1.6 * 0.995), (0, 0.6, 0.8)),
    "inside a sphere": (mbs.Sphere((1, 0, 0), 2.0, inside=True), (1, 1.2 * 1.005, 1.6 * 1.005), (0, -0.6, -0.8)),
    "cylinder": (mbs.Cylinder((0, 0, 0), (1, 0, 0), 2.0), (7, 1.2 * 0.995, 1.6 * 0.995), (0, 0.6, 0.8)),
    "inside a cylinder": (
        mbs.Cylinder((0, 0, 0), (1, 0, 0), 2.0, inside=True), (7, 1.2 * 1.005, 1.6 * 1.005), (0, -0.6, -0.8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SURFACES)
def test_contact_pushes_out_along_the_normal(name):
    surface, point, normal = SURFACES[name]
    normal = np.array(normal, float)
    model = ball(c=mbs.Contact("b", (0, 0, 0), surface, stiffness=1000.0, damping=2.0, friction=0.5))
    assert relative(wrench(model, at(point)), [0, 0, 0, *(10.0 * normal)]) < 1e-11
    approach = np.array([0, 0, 0, *(-0.1 * normal)])
    assert relative(wrench(model, at(point), approach), [0, 0, 0, *(10.0 * 1.2 * normal)]) < 1e-11
    assert relative(wrench(model, at(point), -approach), [0, 0, 0, *(10.0 * 0.8 * normal)]) < 1e-11
    out = np.asarray(point) + 0.02 * normal
    assert relative(wrench(model, at(out), approach), REST) == 0
    leaving_fast = np.array([0, 0, 0, *(10 * normal)])
    assert wrench(model, at(point), leaving_fast)[3:] @ normal >= 0  # never pulls


@pytest.mark.parametrize("depth", [-0.03, -0.01, 0.0, 0.019, 0.021, 0.1])
def test_contact_stores_what_it_gives_back(depth):
    """The force is the slope of the potential, which is continuous where the smoothing ends, at +-0.02 m."""
    model = ball(c=mbs.Contact("b", (0, 0, 0), PLANE, stiffness=1000.0, smoothing=0.02))

    def energy(depth):
        return scalar.energy(model, at((3, 2, 1 - depth)).tolist(), [0.0] * 6)[1]

    force = -scalar.bias_forces(model, at((3, 2, 1 - depth)).tolist(), [0.0] * 6)[5]
    assert energy(depth + 1e-6) - energy(depth - 1e-6) == pytest.approx(2e-6 * force, rel=1e-6, abs=1e-15)
    assert energy(0.02 + 1e-12) == pytest.approx(energy(0.02 - 1e-12), rel=1e-9)


def test_contact_friction_is_coulomb_beyond_the_transition():
    model = ball(c=mbs.Contact("b", (0, 0, 0), PLANE, stiffness=1000.0, friction=0.5, transition_velocity=1e-4))
    got = wrench(model, at((0, 0, 0.99)), np.array([0, 0, 0, 3.0, -4.0, 0]))
    assert relative(got[3:], 10.0 * np.array([-0.3, 0.4, 1])) < 1e-8


def test_contact_with_another_body_reacts_on_it():
    model = pair(c=mbs.Contact("a", (0, 0, 0), mbs.Sphere((0, 0, 0), 1.0), other="b", stiffness=1e3, friction=0.3))
    q = np.concatenate([at((0.7, 0, 0.69)), at(turn=TURN)])
    v = np.linspace(-1, 1, 12)
    a = np.asarray(mbs.forward_dynamics(model, q, v)) - np.asarray(mbs.forward_dynamics(pair(), q, v))
    angular, linear = mbs.momentum(model, q, a)
    assert np.abs(a).max() > 1
    assert relative(np.concatenate([angular, linear]), np.zeros(6)) < 1e-13


def test_central_gravity():
    """Circular orbit: acceleration mu/r^2 towards the centre; potential -mu m / r."""
    model = ball(g=mbs.CentralGravity(mu=8.0, center=(1, 0, 0)))
    q = at((1, 2, 0), TURN)
    assert relative(ROTATION @ wrench(model, q)[3:], 2.0 * np.array([0, -2.0, 0])) < 1e-14
    assert mbs.energy(model, q, REST)[1] == pytest.approx(-8.0)


@pytest.mark.interpreted
def test_central_gravity_acts_at_the_centre_of_mass():
    """Force and moment about the body's origin of a body whose centre of mass is elsewhere."""
    mech, com = mbs.Mechanism("ball"), np.array([0.3, -0.4, 0.5])
    mech.add_body("b", 2.0, com=tuple(com), inertia=(0.4, 0.5, 0.6))
    mech.add_joint("free", mbs.Free(), "world", "b")
    mech.add_force("g", mbs.CentralGravity(mu=8.0, center=(1, 0, 0)))
    model = mech.build()
    r = np.array([1.0, 2.0, 0.0]) + ROTATION @ com - np.array([1.0, 0, 0])
    pull = ROTATION.T @ (-8.0 * 2.0 * r / np.linalg.norm(r) ** 3)
    assert relative(wrench(model, at((1, 2, 0), TURN)), np.concatenate([np.cross(com, pull), pull])) < 1e-14
    assert mbs.energy(model, at((1, 2, 0), TURN), REST)[1] == pytest.approx(-16.0 / np.linalg.norm(r))


@pytest.mark.slow
@pytest.mark.interpreted
def test_central_gravity_is_zero_at_its_centre():
    """Value and derivatives, where none exist, in both modes."""
    model, q = ball(g=mbs.CentralGravity(mu=8.0, center=(1, 0, 0))), jnp.array(at((1, 0, 0)))
    for f in (lambda q: mbs.forward_dynamics(model, q, jnp.zeros(6)), lambda q: mbs.energy(model, q, jnp.zeros(6))[1]):
        assert not np.any(f(q))
        assert np.isfinite(jax.jacfwd(f)(q)).all() and np.isfinite(jax.jacrev(f)(q)).all()


def test_pusher_friction_changes_sign_over_a_centimetre_per_second():
    for rate in (0.002, 0.005, -0.005, 0.02):
        assert push(0.1, rate=rate, friction=15.0) == pytest.approx(40 - 15 * np.tanh(rate / 0.01), rel=1e-12)


ELEMENTS = {
    "spring": mbs.LinearSpring("a", "b", (0.1, 0, 0), (0, 0.2, 0), 30.0, 0.2, 0.5),
    "bushing": mbs.Bushing("a", "b", mbs.Pose((0.3, 0, 0)), mbs.Pose((0, 0.1, 0), TURN), (20.0, 30, 40), (3.0, 4, 5),
                           (0.3, 0.2, 0.1), (0.1, 0.2, 0.3)),
    "pusher": mbs.Pusher("a", "b", (0.1, 0, 0), (-0.1, 0.1, 0), (1, 0, 0), 10.0, 40.0, 9.0, friction=3.0),
    "connector": mbs.Connector("a", "b", (0.1, 0, 0), (-0.1, 0.1, 0), (1, 0, 0), (0.0, 0.7, 2.0), (-20.0, 10.0, 5.0)),
    "cable": mbs.Cable("a", "b", (0.1, 0, 0), (0, 0.2, 0), 30.0, 0.2, 0.5),
    "thruster": mbs.Thruster("b", (0, 0.1, 0), (0, 0, 1), 6.0, (0.0, 0.2, 0.4), (1.0, 0.3, 0.0)),
    "contact": mbs.Contact("a", (0.2, 0, 0), mbs.Sphere((0, 0, 0), 0.9), "b", 400.0, 0.3, 0.4, smoothing=0.05,
                           transition_velocity=0.2),
    "central gravity": mbs.CentralGravity(5.0, (0, 0, -2.0)),
    "external": mbs.External(lambda m, t, q, v: jnp.array([0.1, 0, t, 1, 2, -1.0]), body="a", point=(0, 0.3, 0)),
    "generalized": mbs.External(lambda m, t, q, v: jnp.sin(jnp.arange(12.0) + t)),
    "damper": mbs.Damper("free a", 0.4),
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.usually("contact", "pusher", "bushing", "external", "central gravity")
def test_energy_balance(name):
    """E - E0 equals the work of whatever has no potential, to the order of the integrator."""
    model = pair(element=ELEMENTS[name])
    q = np.concatenate([at((0.1, 0.2, 0.3), TURN), at((0.8, -0.1, 0.4), (0.6, 0.0, 0.8, 0.0))])
    v = np.linspace(-0.5, 0.7, 12)
    solution = mbs.simulate(model, q, v, t_end=0.4, dt=2e-3, save_every=20)
    energies = np.array([mbs.energy(model, *row) for row in zip(solution.q, solution.v, strict=True)]).sum(axis=1)
    assert np.ptp(energies) > 1e-3 or name in ("central gravity", "connector")  # the others do work
    tolerance = 2e-7 if name == "contact" else 2e-8  # its force has kinks, where the order drops
    assert np.abs(solution.energy_error).max() < tolerance * max(1, np.abs(energies).max())
