"""Finite-element models that are not one body that deforms: what is refused, and what looks alike and is not."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import jaxmbs as mbs
from jaxmbs.model.flexible_bodies.beams import assembled
from tests.cases import relative

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
