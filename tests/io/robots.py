"""A public collection of robots against Pinocchio: `python -m tests.io.robots` writes the table robots.md beside this file.

The collection is the package example-robot-data (130 MB), which `make test-robots` installs. The trees of a few of
them stand in shapes.txt, for the default tests.
"""

import re
import sys
import warnings
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

import jaxmbs as mbs
from benchmarks.made_from import in_words
from jaxmbs.dynamics.recursive import aba, crba, rnea, scalar
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import UNROLLED, Tree
from tests.io.test_urdf import compare, random_q, relative
from tests.io.urdf_text import Read

TABLE, SHAPES = (Path(__file__).with_name(name) for name in ("robots.md", "shapes.txt"))
# the long ones whose limbs hang on one another in most ways
SHAPED = "baxter", "centauro", "pr2", "tiago_dual"
LETTERS = {"Fixed": "F", "Revolute": "R", "Prismatic": "P"}


def collection():
    """Paths of all URDF files of the collection, () where it is not installed."""
    try:
        found = files("example-robot-data") or ()
    except PackageNotFoundError:
        return ()
    return tuple(sorted(Path(f.locate()) for f in found if f.suffix == ".urdf"))


def examined(path):
    """(what it is, largest relative differences of RNEA, CRBA, ABA from Pinocchio or None, remarks).

    That of ABA is over what rounding makes of it, 1e-15 times the condition of the mass matrix in 1e-10, where that is more.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = mbs.from_urdf(path, repair="nearest", on_unsupported="warn")
        except mbs.ModelError as error:
            return "refused", None, str(error).splitlines()[0]
    said = " ".join(str(w.message) for w in caught)
    repaired = said.partition("were repaired")[2].count("were changed to")
    remarks = [f"{repaired} inertias repaired"] if repaired else []
    acting = said.partition("affect the motion: ")[2].partition("; not represented")[0]
    remarks += re.findall(r"(mimic of \"[^\"]*\"|[A-Za-z_, ]+ of joints)", acting)
    rubbing = sum(n.endswith("_friction") for n in model.force_names)
    remarks += [f"{rubbing} joints with dry friction"] if rubbing else []
    mimic = sum(n.endswith("_mimic") for n in model.constraint_names)
    remarks += [f"{mimic} mimic joints"] if mimic else []
    remarks += ["forward dynamics with its mimic joints only"] if model.structure.singular else []
    what = f"{len(model.body_names)} bodies, {model.nv} dof"
    if not model.nv:
        return what, np.zeros(3), "moves only with free_base=True"
    mirror = (Repaired if repaired else Read)(path.read_text(encoding="utf-8"), model)
    bound = 1e-15 * np.linalg.cond(mirror.mass_matrix(random_q(model, np.random.default_rng(0))))
    found = [compare(model, mirror, np.random.default_rng(k)) for k in range(3)]
    if len(model.structure.links) > UNROLLED:
        found.append(of_loops(model, np.random.default_rng(3)))
    worst = np.max(found, axis=0)
    remarks += [f"condition of the mass matrix {bound * 1e15:.0e}"] if worst[2] > 1e-10 else []
    return what, worst / [1, 1, max(1.0, bound / 1e-10)], "; ".join(dict.fromkeys(x.strip() for x in remarks))


def of_loops(model, rng):
    """RNEA, CRBA and ABA of the tree in loops over like links; (relative differences from Python's floats)."""
    q, (v, a) = random_q(model, rng), rng.normal(size=(2, model.nv))
    lists = q.tolist(), v.tolist()
    tau = np.array(scalar.inverse_dynamics(model, *lists, a.tolist()), float)
    A = np.reshape(scalar.mass_matrix(model, lists[0]), (model.nv, model.nv)).astype(float)

    with jax.disable_jit():  # to compile it takes half a minute
        state = State(Tree(model, jnp.float64), jnp.asarray(q), jnp.asarray(v))
        got = [rnea.inverse_dynamics(state, jnp.asarray(a)), crba.mass_matrix(state)]
        got.append(a if model.structure.singular else aba.forward_dynamics(state, jnp.asarray(tau)))
    if model.structure.constrained:  # the rows of mimic joints, in loops too
        jax.eval_shape(lambda q, v: mbs.forward_dynamics(model, q, v), q, v)
    return [relative(x, y) for x, y in zip(got, (tau, A, a), strict=True)]


class Repaired(Read):
    """Pinocchio's reading with the inertias that were repaired."""

    def __init__(self, text, model):
        super().__init__(text, model)
        # each of Pinocchio's joints carries the link that hangs on it, and what is fixed to that
        tree = {link.name: link for link in model.structure.links}
        for k, (name, _) in enumerate(self.joints, 1):
            total = pin.Inertia.Zero()
            stack = [(tree[name], pin.SE3.Identity())]
            while stack:
                link, placement = stack.pop()
                mass, com, inertia = (
                    np.asarray(mbs.get(model, f"{link.body}.{x}")) for x in ("mass", "com", "inertia")
                )
                total += placement.act(pin.Inertia(float(mass), com, inertia))
                i = model.structure.joint_index[link.name]
                for child in (model.structure.links[c] for c in model.structure.children[i]):
                    if child.joint.rigid:
                        at = (
                            np.asarray(mbs.get(model, f"{child.name}.parent_pose.{x}"))
                            for x in ("rotation", "position")
                        )
                        stack.append((child, placement * pin.SE3(*at)))
            self.pin.inertias[k] = total


def shape(model):
    """The tree of a model as text: per link, what its joint is and which link carries it."""
    return " ".join(f"{LETTERS[type(link.joint).__name__]}{link.parent}" for link in model.structure.links)


def of_shape(text, seed=0):
    """A model with a tree of `shape`, and other numbers."""
    rng, mech = np.random.default_rng(seed), mbs.Mechanism("robot")
    for k, link in enumerate(text.split()):
        axis = np.eye(3)[rng.integers(3)]
        joint = {"F": mbs.Fixed, "R": lambda a=axis: mbs.Revolute(a), "P": lambda a=axis: mbs.Prismatic(a)}[link[0]]()
        mech.add_body(f"b{k}", rng.uniform(1, 2), rng.normal(size=3) * 0.1, rng.uniform(0.2, 0.3, 3))
        parent = f"b{link[1:]}" if link[1:] != "-1" else "world"
        mech.add_joint(f"j{k}", joint, parent, f"b{k}", mbs.Pose(rng.normal(size=3) * 0.3))
    return mech.build()


def found_shapes():
    """Name and shape of some robots of the collection."""
    for path in collection():
        name = path.stem if path.stem in SHAPED else path.parts[-3].removesuffix("_description")
        if name in SHAPED:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield name, shape(mbs.from_urdf(path, repair="nearest", on_unsupported="warn"))


def shapes():
    """Name and shape of the robots in shapes.txt."""
    return dict(line.split(": ") for line in SHAPES.read_text(encoding="utf-8").splitlines())


def table():
    """The table of the whole collection, in Markdown."""
    lines = [
        "| file | model | inverse dynamics | mass matrix | forward dynamics | remarks |",
        "|---|---|---|---|---|---|",
    ]
    for path in collection():
        what, worst, remarks = examined(path)
        cells = ["", "", ""] if worst is None else [f"{x:.0e}" if x else "" for x in worst]
        name = f"{path.parts[-3].removesuffix('_description')}/{path.name}"
        lines.append(f"| {name} | {what} | {' | '.join(cells)} | {remarks} |")
    built = sum("dof" in line for line in lines)
    head = (
        f"# Robots of example-robot-data\n\nWritten by `make test-robots` from {in_words(TABLE)}. "
        f"{built} of {len(lines) - 2} files build; the differences are relative, from Pinocchio, the largest of three "
        "random states (of forward dynamics over what rounding makes of an ill-conditioned mass matrix).\n\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if not collection():
        sys.exit("the collection is not installed: pip install example-robot-data")
    jax.config.update("jax_enable_x64", True)
    TABLE.write_text(table(), encoding="utf-8")
    SHAPES.write_text("".join(f"{name}: {text}\n" for name, text in found_shapes()), encoding="utf-8")
    print(TABLE, SHAPES)
