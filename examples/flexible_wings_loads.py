"""The moment that a wing brings into a satellite when it latches, for flexible wings and for rigid ones:
python examples/flexible_wings_loads.py [SAMPLES]

The study is flexible_wings.toml; in the rigid one both wings are held in their undeformed shape. Rigid wings stop at once,
so that the moment of the latching is infinite; what is known is its impulse. Estimates by hand take the impulse times the
circular frequency of the first mode.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jax
import numpy as np

import jaxmbs as mbs
from jaxmbs.study import Study

FILE = Path(__file__).parent / "flexible_wings.toml"
HINGE, WING = "left_hinge", "left"


def both() -> tuple[Study, Study]:
    """The study with flexible wings, and with rigid ones."""
    flexible = FILE.read_text(encoding="utf-8")
    held = flexible.replace("[mechanism]\n", '[mechanism]\nheld = ["left", "right"]\n', 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rigid_wings.toml"
        path.write_text(held, encoding="utf-8")
        return mbs.study.read(FILE), mbs.study.read(path)


def impulses(study: Study, found: mbs.study.History) -> np.ndarray:
    """(S,) [N m s]: of the torque about the hinge when it latches, which is the change of the momentum along its coordinate
    from one row to the next, less what the spring does in this time (0.002 N m s)."""
    model, rows = study.model, np.arange(len(found.q))
    last = np.searchsorted(found.t, found.outputs["latched"]) - 1
    A = jax.vmap(lambda q: mbs.mass_matrix(model, q))(found.q[rows, last])
    change = found.v[rows, last + 1] - found.v[rows, last]
    return np.abs(np.einsum("ki,ki->k", np.asarray(A)[:, model.v_slice(HINGE).start], change))


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    flexible, rigid = both()
    bending, stiff = (mbs.study.repeat(study, range(n)) for study in (flexible, rigid))
    latching = impulses(rigid, stiff)
    first = 2 * np.pi * mbs.get(flexible.model, f"{WING}.frequency")[0]
    rows = {
        "flexible: largest moment in the hinge [N m]": bending.outputs["root_moment"],
        "rigid: largest moment but for the latching [N m]": stiff.outputs["root_moment"],
        "rigid: impulse of the latching [N m s]": latching,
        "by hand: impulse times the first frequency [N m]": latching * first,
    }
    print(f"{n} samples{'mean':>45}{'deviation':>12}{'largest':>10}")
    for name, x in rows.items():
        print(f"{name:<50}{x.mean():>8.2f}{x.std():>12.2f}{x.max():>10.2f}")


if __name__ == "__main__":
    main()
