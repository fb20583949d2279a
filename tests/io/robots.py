"""A public collection of robots against Pinocchio: `python -m tests.io.robots` writes the table robots.md beside this file.

The collection is the package example-robot-data (130 MB), which `make test-robots` installs.
"""

import re
import sys
import warnings
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pinocchio as pin

import jaxmbs as mbs
from tests.io.test_urdf import compare, random_q
from tests.io.urdf_text import Read

TABLE = Path(__file__).with_name("robots.md")


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
    repaired = said.partition("were repaired")[2].count("became")
    remarks = [f"{repaired} inertias repaired"] if repaired else []
    acting = said.partition("acts: ")[2].partition("; no part")[0]
    remarks += re.findall(r"(mimic of \"[^\"]*\"|[A-Za-z_, ]+ of joints)", acting)
    mimic = sum(n.endswith("_mimic") for n in model.constraint_names)
    remarks += [f"{mimic} mimic joints"] if mimic else []
    remarks += ["forward dynamics with its mimic joints only"] if model.structure.singular else []
    what = f"{len(model.body_names)} bodies, {model.nv} dof"
    if not model.nv:
        return what, np.zeros(3), "moves only with free_base=True"
    mirror = (Repaired if repaired else Read)(path.read_text(), model)
    bound = 1e-15 * np.linalg.cond(mirror.mass_matrix(random_q(model, np.random.default_rng(0))))
    worst = np.max([compare(model, mirror, np.random.default_rng(k)) for k in range(3)], axis=0)
    remarks += [f"condition of the mass matrix {bound * 1e15:.0e}"] if worst[2] > 1e-10 else []
    return what, worst / [1, 1, max(1.0, bound / 1e-10)], "; ".join(dict.fromkeys(x.strip() for x in remarks))


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
        f"# Robots of example-robot-data\n\nWritten by `make test-robots`. {built} of {len(lines) - 2} files build; the "
        "differences are relative, from Pinocchio, the largest of three random states (of forward dynamics over what "
        "rounding makes of an ill-conditioned mass matrix).\n\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if not collection():
        sys.exit("the collection is not installed: pip install example-robot-data")
    TABLE.write_text(table())
    print(TABLE)
