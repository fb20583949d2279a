"""`python -m docs.validation`: what the results are compared with and how closely they agree, as a table.

Agreements are the bounds that tests demand, each quoted from the code of its test, or the largest differences of a saved
table. A test fails where the code no longer says so, and where the table in the draft of the paper is out of date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAPER = ROOT / "docs" / "paper" / "paper.md"
ROBOTS = ROOT / "tests" / "io" / "robots.md"
BEGIN, END = "<!-- validation: begin -->", "<!-- validation: end -->"
HEAD = ("case", "compared with", "agreement")


@dataclass(frozen=True)
class Row:
    """A comparison. case, reference: as shown; agreement: text in which each {} stands for a bound; bounds: as the test has
    them; file: of the test, in tests/; function: of the file; demanded: what the function demands, with these bounds."""

    case: str
    reference: str
    agreement: str
    bounds: tuple[str, ...]
    file: str
    function: str
    demanded: str


ROWS = (
    Row(
        "random trees of 1 to 40 bodies, of nine kinds of joints",
        "Pinocchio",
        "mass matrix, bias, inverse dynamics, energy: {} relative",
        ("1e-10",),
        "dynamics/recursive/test_scalar.py",
        "check",
        "assert relative(A, c.pinocchio.mass_matrix(q)) < 1e-10",
    ),
    Row(
        "random closed loops",
        "Pinocchio",
        "accelerations: {} relative",
        ("1e-8",),
        "dynamics/constrained/test_against_pinocchio.py",
        "test_accelerations",
        "assert np.abs(got - want).max() < 1e-8 * max(1.0, np.abs(want).max())",
    ),
    Row(
        "IFToMM A01: pendulum in Cartesian coordinates, 10 s",
        "Jacobi's elliptic functions",
        "positions: {} m",
        ("1e-8",),
        "dynamics/constrained/test_published.py",
        "test_a01_pendulum_by_a_constraint",
        "np.testing.assert_allclose(run.q, np.stack([np.sin(2 * half), -np.cos(2 * half)], 1), rtol=0, atol=1e-8)",
    ),
    Row(
        "IFToMM A02: four-bar windows through their flat position, 10 s",
        "the equivalent system with one freedom",
        "angles: {} rad",
        ("1e-7",),
        "dynamics/constrained/test_published.py",
        "test_a02_windows_pass_the_flat_position",
        "np.testing.assert_allclose(run.q, np.outer(exact.y[0], sign), rtol=0, atol=1e-7)",
    ),
    Row(
        "IFToMM A03: Andrews' squeezer",
        "published reference solution at 0.03 s",
        "angles: {} rad",
        ("5e-9",),
        "dynamics/constrained/test_published.py",
        "test_a03_final_angles",
        "np.testing.assert_allclose(run.q[-1], [want[n] for n in model.joint_names], rtol=0, atol=5e-9)",
    ),
    Row(
        "IFToMM A04: Bricard's linkage, with a redundant loop, 2 s",
        "the equivalent system with one freedom",
        "angles: {} rad",
        ("1e-8",),
        "dynamics/constrained/test_published.py",
        "test_a04_bricard",
        "np.testing.assert_allclose(run.q[:11], want, rtol=0, atol=1e-8)",
    ),
    Row(
        "rolling disc, leaning and spinning",
        "Newton and Euler's equations",
        "accelerations and contact force: {} relative",
        ("1e-12",),
        "dynamics/constrained/test_published.py",
        "test_rolling_disc_against_newton_and_euler",
        "np.testing.assert_allclose(multipliers, found[3:], rtol=1e-12, atol=1e-12)",
    ),
    Row(
        "benchmark bicycle, 0 to 10 m/s",
        "published eigenvalues, all printed digits",
        "{} relative",
        ("2e-13",),
        "stability/test_bicycle.py",
        "test_all_printed_digits_of_the_eigenvalues",
        "assert min(abs(x - y) for y in moving) < 2e-13 * max(1, abs(x))",
    ),
    Row(
        "free rotation of an asymmetric body, 40 s",
        "Jacobi's elliptic functions",
        "angular velocities: {} rad/s",
        ("1e-9",),
        "simulate/test_steppers.py",
        "test_torque_free_rotation_against_jacobi_functions",
        "assert np.abs(rows - exact).max() < 1e-9",
    ),
    Row(
        "bouncing ball, three impacts",
        "closed form",
        "times of the impacts: {} s",
        ("1e-12",),
        "simulate/test_events.py",
        "test_a_bouncing_ball_follows_its_closed_form_with_exact_derivatives",
        "assert np.allclose(run.events.time[: len(times)], times, atol=1e-12) and len(times) == 3",
    ),
    Row(
        "its derivatives with respect to gravity, restitution and height",
        "differences of the closed form",
        "{} relative",
        ("1e-7",),
        "simulate/test_events.py",
        "test_a_bouncing_ball_follows_its_closed_form_with_exact_derivatives",
        "assert np.allclose(forward, differences, rtol=1e-7, atol=1e-7)",
    ),
    Row(
        "standard atmosphere, up to 85 km",
        "printed densities of 1976",
        "{} relative",
        ("6e-5",),
        "environment/test_environment.py",
        "test_the_standard_atmosphere_has_its_printed_values",
        "assert float(gas.density) == pytest.approx(density, rel=6e-5), height",
    ),
    Row(
        "flights over the earth, 30 s",
        "NASA's check cases, atmospheric, 1 and 4 to 10",
        "within the spread of the published simulators and {} relative",
        ("1e-6",),
        "environment/test_check_cases.py",
        "outside",
        "slack = {k: 1e-6 * max(map(abs, ends)) for k, ends in printed.items()}",
    ),
    Row(
        "cantilever of rigid links",
        "Euler and Bernoulli's frequencies",
        "errors decrease with order 2 (measured to {})",
        ("0.35",),
        "library/test_elastic.py",
        "test_cantilever_frequencies_and_deflection",
        "assert np.all(np.abs(orders(errors) - 2) < 0.35), orders(errors)",
    ),
    Row(
        "25 published problems of rare failures",
        "probabilities by other methods, within 8 % of the published ones",
        "means of fifty estimates: {} relative, of one problem {}; coverage of the intervals is tested",
        ("0.15", "0.5"),
        "study/test_reliability.py",
        "test_intervals_hold_the_probabilities_of_published_problems",
        'assert np.mean([e.probability for e in found]) == pytest.approx(p, rel=0.15 if name != "RP110" else 0.5)',
    ),
)


def table() -> str:
    """The table as Markdown."""
    shown = [(r.case, r.reference, r.agreement.format(*r.bounds)) for r in ROWS]
    shown.insert(1, _robots())
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEAD, ("---",) * len(HEAD), *shown)) + "\n"


def _robots() -> tuple[str, str, str]:
    """The row of the robots, from their saved table."""
    text = ROBOTS.read_text(encoding="utf-8")
    count = re.search(r"(\d+) of (\d+) files build", text)
    cells = [[x.strip() for x in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    found = [row[2:5] for row in cells if all(re.fullmatch(r"\d+e-\d+", x) for x in row[2:5])]
    if count is None or not found:
        raise ValueError(f"{ROBOTS} has no count of files or no differences; write it again by `make test-robots`")
    inverse, mass, forward = (max(column, key=float) for column in zip(*found, strict=True))
    said = f"inverse dynamics {inverse}, mass matrix {mass}, forward dynamics {forward} (of its condition) relative"
    return f"{count[1]} of {count[2]} robots of example-robot-data", "Pinocchio", said


def page() -> str:
    """The page of the manual."""
    tests = "\n".join(f"- {r.case}: [{r.function}](../../tests/{r.file})" for r in ROWS)
    return (
        "# Validation\n\nWhat results are compared with. Agreements are the bounds that the tests demand, except those of "
        f"the robots, which are the largest differences in [their table](../../tests/io/robots.md).\n\n{table()}\n"
        f"## Where the tests are\n\n{tests}\n\nAll references of the tests are listed in [Tests](../../tests/README.md).\n"
    )


def rewritten(text: str) -> str:
    """The draft of the paper with the table as it is now. Raises ValueError if it has no place for the table."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAPER}: the table belongs between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAPER.write_text(rewritten(PAPER.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAPER)
