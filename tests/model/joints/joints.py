"""One joint of every type with numbers in general position, a joint of one's own among them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import jaxmbs as mbs
from jaxmbs.model import joints
from jaxmbs.model.fields import declared
from jaxmbs.spatial import Vector3

EXAMPLE = Path(__file__).parents[3] / "examples" / "variable_screw.py"


def _example():
    spec = importlib.util.spec_from_file_location("variable_screw", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


variable_screw = _example()
VariableScrew = variable_screw.VariableScrew
TYPES = {c.__name__: c for c in vars(joints).values() if isinstance(c, type) and issubclass(c, joints.Joint)}
del TYPES["Joint"]
FORMULAS = {
    "Fixed": mbs.Fixed(),
    "Revolute": mbs.Revolute(axis=(0, 0.6, 0.8)),
    "Prismatic": mbs.Prismatic(axis=(0.6, 0, -0.8)),
    "Helical": mbs.Helical(axis=(0.6, 0.8, 0), pitch=0.3),
    "Cylindrical": mbs.Cylindrical(axis=(0.6, 0, -0.8)),
    "Universal": mbs.Universal(axis_1=(1, 0, 0), axis_2=(0.48, 0.6, 0.64)),
    "Spherical": mbs.Spherical(),
    "Planar": mbs.Planar(),
    "Free": mbs.Free(),
    "VariableScrew": VariableScrew(axis=(0, 0.6, 0.8), pitch=0.3, growth=0.2),
}


def numbers(joint):
    """What a joint's methods get as p."""
    values = {d.name: getattr(joint, d.name) for d in declared(type(joint))}
    return {n: Vector3.of([float(c) for c in x]) if np.ndim(x) else float(x) for n, x in values.items()}


def state(joint, seed=0):
    """(q, v) as floats: angles within half a turn, unit quaternions."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.5, 1.5, joint.nq)
    return joint.normalised(q.tolist()), rng.uniform(-1, 1, joint.nv).tolist()


def arrays(X):
    """(position, rotation) of a placement."""
    return np.array(list(X.position), float), np.array(list(X.rotation), float).reshape(3, 3)


def six(x):
    """A motion or a wrench as an array."""
    return np.array(x.scalars(), float)
