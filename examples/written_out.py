"""The three-link arm of [T 3] written out, and operation counts of several arms: python examples/written_out.py

Prints the mass matrix of the three-link arm as LaTeX and C, then a table of operations (additions + multiplications +
divisions; sines and cosines) of written-out formulas, compared with those of the recursions themselves.
"""

from __future__ import annotations

import numpy as np

import jaxmbs as mbs
from jaxmbs.library import telegin_robots

WHATS = ("mass_matrix", "inverse_dynamics", "forward_dynamics")
# operations of CRBA, RNEA, ABA for a chain of seven revolute joints, structural zeros folded
RECURSIONS = {"aligned 7R": (651, 1101, 2065), "general 7R": (1752, 1688, 3721)}


def seven_axes(aligned: bool) -> mbs.Mechanism:
    """Seven revolute joints, full inertias; joint frames along the body's axes if `aligned`, else turned arbitrarily."""
    dice = np.random.default_rng(1)
    mech = mbs.Mechanism("aligned 7R" if aligned else "general 7R", gravity=(0.0, 0.0, -9.81))
    for i in range(7):
        inertia = np.diag(dice.uniform(1, 1.4, 3)) + 0.05
        mech.add_body(f"link_{i}", 1.0 + i, dice.normal(size=3) * 0.2, inertia)
        turned = mbs.Pose(dice.normal(size=3) * 0.3, dice.normal(size=4))
        pose = mbs.Pose((0.0, 0.0, 0.3)) if aligned else turned
        axis = (0, i % 2, 1 - i % 2) if aligned else (0, 0, 1)
        mech.add_joint(f"joint_{i}", mbs.Revolute(axis), f"link_{i - 1}" if i else "world", f"link_{i}", pose)
    return mech


ROBOTS = {
    "three-link arm [T 3]": telegin_robots.three_link_arm,
    "planar two-arm robot [T 4]": telegin_robots.planar_two_arm_robot,
    "spatial two-arm robot [T 5]": telegin_robots.spatial_two_arm_robot,
    "arm7": mbs.library.arm7,
    "aligned 7R": lambda: seven_axes(True),
    "general 7R": lambda: seven_axes(False),
}


def main(robots: tuple[str, ...] = tuple(ROBOTS)) -> dict[tuple[str, str], mbs.symbolic.Operations]:
    arm = mbs.textbook.write_out(telegin_robots.three_link_arm().build(), "mass_matrix")
    print(arm, arm.latex(), arm.c(), sep="\n\n")
    found = {}
    print(f"{'operations + sines and cosines':30}" + "".join(f"{w:>28}" for w in WHATS))
    for name in robots:
        model, row = ROBOTS[name]().build(), f"{name:30}"
        for what in WHATS:
            n = found[name, what] = mbs.textbook.write_out(model, what).operations
            cell = f"{n.additions}+ {n.multiplications}* {n.divisions}/ = {n.total}"
            row += f"{cell + f' + {n.trigonometric}':>28}"
        print(row, flush=True)
        if name in RECURSIONS:
            print(f"{'    CRBA, RNEA, ABA':30}" + "".join(f"{n:>28}" for n in RECURSIONS[name]))
    return found


if __name__ == "__main__":
    main()
