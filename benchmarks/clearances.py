"""python -m benchmarks.clearances [--keep]: distances of bodies of 50 convex pieces, and what they cost in a study.

Distances: two rings of 50 hulls of twelve points, apart, in one batch; beside it Coal, which gets all triangles of each
ring as one mesh with a tree of boxes, in a loop over the placements, which is on one core.

Studies: samples of the study of the demo, a thousand steps each, in one batch with and without a clearance: of two single
shapes, of two rings of 50 hulls that part, and of the nozzle in the interstage, both of 50 flat panels, which slide along
each other. Least gaps are compared with those at the steps alone, which they must not exceed.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import made_from, within_jax

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "clearances.json"
PIECES, CORNERS, PLACEMENTS, SAMPLES = 50, 12, 4096, 256


def rings() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The corners of the hulls of two rings about x, on both sides of the plane x = 0."""
    rng = np.random.default_rng(1)
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for side, hulls in zip((-1, 1), found, strict=True):
        for turn in 2 * np.pi * np.arange(PIECES) / PIECES:
            middle = np.array([side * (0.05 + 0.3 * rng.random()), 0.6 * np.cos(turn), 0.6 * np.sin(turn)])
            points = middle + 0.04 * rng.standard_normal((CORNERS, 3))
            points[:, 0] = side * np.maximum(side * points[:, 0], 0.01)
            hulls.append(points)
    return found


def meshes() -> list[Any]:
    """Both rings as meshes of Coal."""
    from scipy.spatial import ConvexHull

    coal, found = importlib.import_module("coal"), []
    for hulls in rings():
        mesh, vertices, triangles = coal.BVHModelOBBRSS(), coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for number, hull in enumerate(hulls):
            for triangle in ConvexHull(hull).simplices + CORNERS * number:
                triangles.append(coal.Triangle(*map(int, triangle)))
            for point in hull:
                vertices.append(point)
        mesh.beginModel(len(triangles), len(vertices))
        mesh.addSubModel(vertices, triangles)
        mesh.endModel()
        found.append(mesh)
    return found


def by_coal(a: Any, b: Any, placements: list[Any]) -> np.ndarray:
    """Distances of two meshes with the second one so placed."""
    coal = importlib.import_module("coal")
    still, request = coal.Transform3s(), coal.DistanceRequest()
    return np.array([coal.distance(a, still, b, x, request, coal.DistanceResult()) for x in placements])


def distances(rounds: int) -> dict[str, Any]:
    """Microseconds per distance of both, seconds of the first call, and the largest difference."""
    import jax
    import jax.numpy as jnp
    from scipy.spatial.transform import Rotation

    import jaxmbs as mbs
    from jaxmbs.geometry import Before, Piece, Union, Unions, separation
    from jaxmbs.spatial import Matrix3, Vector3

    unions = Unions([Union.of([Piece.of_points(x) for x in hulls]) for hulls in rings()], np.float64)
    rng = np.random.default_rng(0)
    R = Rotation.from_rotvec(0.05 * rng.normal(size=(PLACEMENTS, 3))).as_matrix()
    p = np.array([0.2, 0.0, 0.0]) + 0.05 * rng.normal(size=(PLACEMENTS, 3))

    def gap(R: Any, p: Any) -> Any:
        return separation(
            unions, jnp.int32(0), jnp.int32(1), Matrix3.of(list(R.ravel())), Vector3.of(list(p)), Before()
        ).gap

    together = mbs.jit(gap, in_axes=0)
    start = time.perf_counter()
    found = np.asarray(jax.block_until_ready(together(R, p)))
    first = time.perf_counter() - start
    ours, coal, pair = [], [], meshes()
    there = [importlib.import_module("coal").Transform3s(*x) for x in zip(R[:256], p[:256], strict=True)]
    for _ in range(rounds):
        ours.append(within_jax.timed(together, (R, p)) / PLACEMENTS)
        start = time.perf_counter()
        want = by_coal(*pair, there)
        coal.append((time.perf_counter() - start) / 256)
    return {
        "pieces": PIECES, "placements": PLACEMENTS, "ours_us": 1e6 * min(ours), "coal_us": 1e6 * min(coal), "first_s": first,
        "ratio": min(coal) / min(ours), "error": float(np.abs(found[:256] - want).max()), "load": os.getloadavg()[0],
    }  # fmt: skip


def clearances() -> dict[str, Any]:
    """The clearances of the study, by name."""
    from jaxmbs.study.outputs import Box, Clearance, Compound, Hull, Panel, Tube

    def error(radius: float) -> float:
        return 1.0001 * radius * (1 / math.cos(math.pi / PIECES) - 1)

    wall = {"center": (-1.2, 0, 0), "axis": (1, 0, 0), "radius": 0.6, "length": 1.2, "thickness": 0.01}
    bell = {"axis": (-1, 0, 0), "radius": 0.2, "end_radius": 0.45, "length": 0.9, "thickness": 0.01}
    apart = (
        Compound([Hull(body, points=x.tolist()) for x in hulls])
        for body, hulls in zip(("stage", "payload"), rings(), strict=True)
    )
    return {
        "two shapes part": Clearance(
            Box("stage", size=(1, 1, 1), center=(-3, 0, 0)), Tube("payload", radius=0.5, length=1.0, center=(1, 0, 0))
        ),
        "50 + 50 hulls part": Clearance(*apart),
        "50 + 50 panels slide": Clearance(
            Panel("stage", error=error(0.61), **wall), Panel("payload", error=error(0.46), **bell)
        ),
    }


def studies(rounds: int) -> list[dict[str, Any]]:
    """For each clearance: milliseconds per sample of the motion alone and with it, and seconds of the first calls."""
    import jax

    import jaxmbs as mbs
    from jaxmbs.study.problem.study import read

    study = read(str(ROOT / "examples" / "stage_separation.toml"))
    alone = {"tip_off_rate": study.outputs["tip_off_rate"]}
    key, rows = jax.random.key(0), []

    def program(outputs: dict[str, Any]) -> tuple[Any, Any, float]:
        own = replace(study, outputs=outputs, criteria=())
        draws = jax.vmap(lambda i: own.dispersions.draw(own.dispersions.keys(key), i, np.float64))(np.arange(SAMPLES))
        function = mbs.jit(mbs.study.sample_function(own), in_axes=0)
        start = time.perf_counter()
        jax.block_until_ready(function(draws))
        return function, draws, time.perf_counter() - start

    without = program(alone)
    for name, clearance in clearances().items():
        with_it = program(alone | {"gap": clearance})
        taken: tuple[list[float], ...] = ([], [])
        for _ in range(rounds):
            for times, (function, draws, _) in zip(taken, (without, with_it), strict=True):
                times.append(within_jax.timed(function, (draws,)))
        motion, both = (1e3 * min(times) / SAMPLES for times in taken)
        gaps = np.asarray(with_it[0](with_it[1])["gap"])
        rows.append({
            "clearance": name, "motion_ms": motion, "with_ms": both, "ratio": (both - motion) / motion,
            "first_motion_s": without[2], "first_with_s": with_it[2], "excess": excess(study, clearance, with_it[1], gaps),
            "load": os.getloadavg()[0],
        })  # fmt: skip
    return rows


def excess(study: Any, clearance: Any, draws: Any, gaps: np.ndarray) -> float:
    """[m] By how much the least gap of a sample exceeds the least at the steps, at most, for eight samples: never more than
    rounding, because it is the least between the steps, too."""
    import jaxmbs as mbs

    own = replace(study, outputs={"gap": clearance}, criteria=())
    at_steps = mbs.study.repeat(own, list(range(8)), draws=np.asarray(draws[:8])).values["gap"]
    return float((gaps[:8] - np.nanmin(np.asarray(at_steps), axis=1)).max())


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Timed rounds of both; the fastest counts.")] = 7,
    keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False,
) -> None:
    """Measure distances and studies."""
    from jaxmbs.cli.common import compute

    os.environ["JAXMBS_CACHE"] = "off"  # first calls compile
    compute("float64")
    apart = distances(rounds)
    said = "{pieces} + {pieces} hulls: {ours_us:.1f} us each, Coal {coal_us:.0f} us, {ratio:.1f} times; error {error:.0e} m"
    print(said.format(**apart), flush=True)
    found = studies(rounds)
    for row in found:
        said = (
            "{clearance}: {motion_ms:.2f} ms a sample, {with_ms:.2f} with the clearance: {ratio:.1f} times the motion more; "
            "first call {first_with_s:.1f} s, {first_motion_s:.1f} s without; excess {excess:.0e} m"
        )
        print(said.format(**row), flush=True)
    if keep:
        made_from.keep(RESULTS, {"distances": apart, "studies": found})


if __name__ == "__main__":
    typer.run(main)
