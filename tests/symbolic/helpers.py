"""Models, written-out formulas that are shared between tests, and the functions that they must agree with."""

import ctypes
import functools
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.library import telegin_robots

WHATS = ("mass_matrix", "bias_forces", "inverse_dynamics", "forward_dynamics", "kinetic_energy")
EXACT = 1e-12


def chain(name, joints, aligned=True):
    """Links in a row with full inertias; turned placements unless aligned."""
    rng = np.random.default_rng(1)
    mech = mbs.Mechanism(name, gravity=(0, 0, -9.81))
    for i, joint in enumerate(joints):
        inertia = np.diag(rng.uniform(1, 1.4, 3)) + 0.05
        mech.add_body(f"link_{i}", 1.0 + i, rng.normal(size=3) * 0.2, inertia)
        pose = mbs.Pose((0, 0, 0.3)) if aligned else mbs.Pose(rng.normal(size=3) * 0.3, rng.normal(size=4))
        mech.add_joint(f"joint_{i}", joint, f"link_{i - 1}" if i else "world", f"link_{i}", pose)
    return mech


def sprung():
    """A pendulum with springs, a pusher, a thruster and a plane below: roots, choices and time in the formulas."""
    mech = mbs.Mechanism("a 100 % pendulum_*/", gravity=(0.3, -9.81, 1.0))
    mech.add_body("2nd rod", 2.0, (0.1, 0.2, 0.05), (0.2, 0.3, 0.25))
    mech.add_joint("j", mbs.Revolute((0.6, 0.8, 0)), "world", "2nd rod", mbs.Pose((0.1, 0.2, 0.3)))
    mech.add_force("coil", mbs.TorsionSpring("j", stiffness=5.0, damping=0.1, rest_angle=1.6))
    mech.add_force("strut", mbs.LinearSpring("2nd rod", "world", (0, 0, 0.1), (1, 0, 0), 100.0, 0.5, 0.3))
    mech.add_force("push", mbs.Pusher("2nd rod", "world", (0, 0, 0.1), (0.5, 0, 0), (0, 1, 0), 100.0, 20.0, 0.3, 0.05))
    mech.add_force("jet", mbs.Thruster("2nd rod", (0, 0, 0.1), (1, 0, 0), 20.0, (0.0, 0.5, 1.0), (0.0, 1.0, 0.5)))
    return mech


Y, Z = (0, 1, 0), (0, 0, 1)
MECHANISMS = {
    "three-link arm": telegin_robots.three_link_arm,
    "planar robot": telegin_robots.planar_two_arm_robot,
    "spatial robot": telegin_robots.spatial_two_arm_robot,
    "double pendulum": mbs.library.double_pendulum,
    "sliding": lambda: chain("arm", (mbs.Revolute(Z), mbs.Prismatic(Z), mbs.Cylindrical(Y))),
    "hinged": lambda: chain("arm", (mbs.Planar(), mbs.Helical(Z, 0.1), mbs.Universal((1, 0, 0), Y))),
    "ball": lambda: chain("arm", (mbs.Spherical(), mbs.Fixed(), mbs.Revolute(Y))),
    "free": lambda: chain("satellite", (mbs.Free(),)),
    "opposite": lambda: chain("opposite", (mbs.Revolute(Y), mbs.Revolute((0, -1, 0)), mbs.Revolute(Y))),
    "turned": lambda: chain("turned", (mbs.Revolute(Z), mbs.Revolute(Z)), aligned=False),
    "sprung": sprung,
    "arm7": mbs.library.arm7,
    "aligned 7R": lambda: chain("aligned 7R", [mbs.Revolute((Z, Y)[i % 2]) for i in range(7)]),
    "general 7R": lambda: chain("general 7R", [mbs.Revolute(Z)] * 7, aligned=False),
}


@functools.cache
def model(name):
    return MECHANISMS[name]().build()


def written(name, what, constants="symbols"):
    return _written(name, what, constants)


@functools.cache
def _written(name, what, constants):
    return mbs.textbook.write_out(model(name), what, constants=constants)


def arguments(out, of, seed=0):
    """[q, v, ...] at a random state, t last if the formulas depend on it."""
    dice = random.Random(seed)
    q = [c + dice.uniform(-2, 2) for link in of.structure.links for c in link.joint.neutral()]
    given = [q if name == "q" else [dice.uniform(-2, 2) for _ in range(n)] for name, n in out.inputs if name != "t"]
    return [*given, dice.uniform(0.1, 0.9)] if ("t", 1) in out.inputs else given


def expected(out, of, args):
    """The library's own value, computed with Python floats."""
    vectors, time = [x for x in args if isinstance(x, list)], {"t": args[-1]} if isinstance(args[-1], float) else {}
    if out.what == "kinetic_energy":
        return scalar.energy(of, *vectors)[0]
    return getattr(scalar, out.what)(of, *vectors, **time)


def difference(got, want):
    """Largest difference relative to the largest entry; entries that should vanish count too."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape
    return np.abs(got - want).max() / max(np.abs(want).max(), 1e-300)


def compiled(out):
    """The emitted C as a Python function of lists, through a shared library; None without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "f.c"), Path(folder, "f.so")
        source.write_text(out.c(), encoding="utf-8")
        strict = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-parameter", "-pedantic", "-Werror"]
        subprocess.run([compiler, *strict, "-O1", "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
        loaded = ctypes.CDLL(str(library))
    f = getattr(loaded, out.what)
    f.restype = None if out.shape else ctypes.c_double
    k = [] if out.numeric or not out.constants else [computed_constants(loaded, out)]

    def call(*args):
        given = [ctypes.c_double(x) if isinstance(x, float) else (ctypes.c_double * len(x))(*x) for x in args]
        if not out.shape:
            return f(*given, *k)
        result = (ctypes.c_double * int(np.prod(out.shape)))()
        f(*given, *k, result)
        return np.array(result).reshape(out.shape)

    return call


def computed_constants(loaded, out):
    k = (ctypes.c_double * len(out.constants))()
    parameters = (ctypes.c_double * len(out.parameters)).in_dll(loaded, f"{out.what}_parameters")
    getattr(loaded, f"{out.what}_constants")(parameters, k)
    return k
