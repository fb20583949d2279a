"""Finite-element models that are not one body that deforms: what is refused, and what looks alike and is not."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import jaxmbs as mbs
from jaxmbs.model.flexible_bodies.beams import assembled
from jaxmbs.model.flexible_bodies.reduction import of_shapes
from tests.cases import relative
from tests.flexible.parts import lumped, truss

N = 6


def beam(length=1.0):
    """Mass, stiffness and positions of N elements along x."""
    x = np.zeros((N + 1, 3))
    x[:, 0] = np.linspace(0, length, N + 1)
    M, K = (m.toarray() for m in assembled(N, length / N, 1.0, (1.0, 2.0), 1.0, 1e3, 1e-3))
    return M, K, x


def less(K, share):
    """Without a share of the stiffness of the third element."""
    own = assembled(1, 1 / N, 1.0, (1.0, 2.0), 1.0, 1e3, 1e-3)[1].toarray()
    K = K.copy()
    K[12:24, 12:24] -= share * own
    return K


@pytest.mark.interpreted
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("frame", [0, None])
@pytest.mark.parametrize("attachments", [{}, {"tip": N}])
@pytest.mark.parametrize("share", [1.0, 2.5])
def test_a_beam_that_is_cut_or_supplies_energy_is_refused(form, frame, attachments, share):
    M, K, x = beam()
    with pytest.raises(mbs.ModelError, match=r"leaves . free|is not positive where|has a negative eigenvalue"):
        mbs.Part.from_matrices(form(M), form(less(K, share)), x, attachments=attachments, frame=frame, modes=4)


@pytest.mark.interpreted
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("attachments", [{}, {"tip": N}])
def test_a_free_body_of_masses_on_a_line_keeps_all_elastic_modes(form, attachments):
    """It has five motions of a rigid body that move mass, not six: against the masses alone, the rest as in statics."""
    _, K, x = beam()
    M = np.kron(np.eye(N + 1), np.diag([1.0, 1, 1, 0, 0, 0]))
    part = mbs.Part.from_matrices(form(M), form(K), x, attachments=attachments, modes=4)
    exact = []
    for u, w in ((1, 5), (2, 4)):
        at, turned = (slice(k, None, 6) for k in (u, w))
        condensed = K[at, at] - K[at, turned] @ np.linalg.solve(K[turned, turned], K[turned, at])
        exact += [*scipy.linalg.eigvalsh(condensed)[2:]]
    assert relative(part.frequency[:2], np.sqrt(np.sort(exact)[:2]) / (2 * np.pi)) < (1e-9 if not attachments else 2e-3)


@pytest.mark.interpreted
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_rotations_without_mass_and_stiffness_stay_at_rest(form):
    """As of shells about their normals: bending is that of the beam with torsion."""
    M, K, x = beam()
    keep = np.arange(len(M)) % 6 != 3
    found = mbs.Part.from_matrices(
        form(M * np.outer(keep, keep)), form(K * np.outer(keep, keep)), x, attachments={}, frame=0
    )
    whole = mbs.Part.from_matrices(M, K, x, attachments={}, frame=0)
    assert relative(found.frequency[:4], whole.frequency[:4]) < 1e-10


@pytest.mark.interpreted
def test_rotary_inertias_in_other_units_are_noticed():
    """Millimetres for rotations in the mass matrix, metres elsewhere."""
    M, K, x = beam()
    S = np.tile([1.0, 1, 1, 1, 1e3, 1e3], N + 1)
    with pytest.warns(mbs.ModelWarning, match=r"radius of gyration of 11.* m, but no node is farther than 0.5 m"):
        mbs.Part.from_matrices(S[:, None] * M * S, K, x, attachments={}, frame=0)
    S[3::6] = 1e3
    with pytest.raises(mbs.ModelError, match="of which one exceeds the sum of the others"):
        mbs.Part.from_matrices(S[:, None] * M * S, K, x, attachments={}, frame=0)
    M[6, 10] = M[10, 6] = 0.1 * np.sqrt(M[6, 6] * M[10, 10])
    with pytest.raises(mbs.ModelError, match="does not fit the positions"):
        mbs.Part.from_matrices(M, K, x, attachments={}, frame=0)


def a_beam():
    return mbs.Part.beam(3.0, 4.0, (60.0, 90.0), 40.0, modes=6, elements=6, attach=("root", "tip"))


@pytest.mark.interpreted
@pytest.mark.parametrize("part", [a_beam(), lumped(nodes=9)[0]])
@pytest.mark.parametrize(
    ("name", "factor", "says"),
    [
        ("inertia_change", 39.37, "inertia_change is .* in all modes, but a body with this mass"),
        ("inertia_change", 1e3, "inertia_change is"),
        ("inertia", 1e-6, "is not positive|inertia_change is"),
        ("mass", 1e-3, "is not positive"),
        ("com", 1e3, "is not positive"),
        ("coupling", 1e3, "coupling has the singular value .* it has at most 1;"),
        ("inertia_curvature", 1e3, "inertia_curvature has the eigenvalue .* it has at most 2;"),
    ],
)
def test_units_of_shape_integrals_that_differ_are_refused(part, name, factor, says):
    with pytest.raises(mbs.ModelError, match=says):
        mbs.Part(**{**vars(part), name: factor * getattr(part, name)})


@pytest.mark.interpreted
@pytest.mark.parametrize(("name", "factor"), [("positions", 1e3), ("inertia", 1e6)])
def test_units_of_places_that_differ_are_noticed(name, factor):
    part = a_beam()
    with pytest.warns(
        mbs.ModelWarning, match="the farthest node is .* m from its centre of mass; check that positions"
    ):
        mbs.Part(**{**vars(part), name: factor * getattr(part, name)})


@pytest.mark.interpreted
def test_the_most_that_a_body_can_have_is_accepted():
    """A ring that grows: no body of its mass and size has an inertia that changes faster."""
    angle = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    x = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    ring = of_shapes(np.eye(24), x, x.reshape(-1, 1) / 8**0.5, np.ones(1))
    assert ring["inertia_change"][0, 2, 2] == pytest.approx(2 * ring["inertia"][2, 2] ** 0.5)
    mbs.Part(**ring)
    change = ring.pop("inertia_change")
    mbs.Part(**ring, inertia_change=1.49 * change)
    with pytest.raises(mbs.ModelError, match=r"inertia_change is 8.54 .* at most 5.66"):
        mbs.Part(**ring, inertia_change=1.51 * change)


@pytest.mark.interpreted
def test_parts_in_single_precision_are_accepted():
    M, K, x = truss()
    for part in (a_beam(), lumped()[0], mbs.Part.from_matrices(M, K, x, attachments={}, frame=[0, 1, 2, 3], modes=40)):
        single: dict[str, Any] = {k: y if k in ("nodes", "recovery") else np.float32(y) for k, y in vars(part).items()}
        mbs.Part(**single)
