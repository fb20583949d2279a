"""Fronts of two objectives against closed form: convex, not convex, under conditions; the command and its picture."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.design import FrontPoint, Function, Status, pareto
from jaxmbs.design.front import _not_dominated
from tests.design.published import Published, problem
from tests.design.test_failed_samples import SLIDER
from tests.study.conftest import command  # noqa: F401


def two(first, second, start=(0.3, 0.2), **options):
    """The problem of two functions of x with the goal "lowest"."""
    n, p = len(start), problem(Published(start, lambda x: x[0], **options))

    def of(fn):
        return Function(lambda model, q: fn(mbs.get(model, "b0.com")[:n]), configurations=1, goal="lowest")

    return replace(p, objectives=[of(first), of(second), *p.objectives[1:]])


def test_a_convex_front():
    """Distances from two points, squared: their roots add up to the distance between these."""
    a, b = np.array([0.0, 0.0]), np.array([0.6, 0.8])
    front = pareto(two(lambda x: jnp.sum((x - a) ** 2), lambda x: jnp.sum((x - b) ** 2)), 5)
    assert len(front.points) == 7 and front.values[0] == pytest.approx([0, 1], abs=2e-4)
    assert np.sqrt(np.maximum(front.values, 0.0)).sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    assert np.all(np.diff(front.values[:, 0]) > 0.005) and np.all(np.diff(front.values[:, 1]) < -0.005)


@pytest.mark.slow
def test_a_front_that_is_not_convex():
    """1 - exp of minus squared distances [C. Fonseca, P. Fleming, 1995]: a sum of weights finds the ends alone."""
    c = 1 / np.sqrt(2)
    front = pareto(
        two(lambda x: 1 - jnp.exp(-jnp.sum((x - c) ** 2)), lambda x: 1 - jnp.exp(-jnp.sum((x + c) ** 2)),
            low=-4.0, high=4.0), 7,
    )  # fmt: skip
    assert len(front.points) == 9
    f, g = np.clip(front.values, 0.0, 1 - 1e-12).T
    assert np.sqrt(-np.log(1 - f)) + np.sqrt(-np.log(1 - g)) == pytest.approx(2.0, abs=1e-4)
    middle = np.abs(f - g).argmin()
    assert f[middle] + g[middle] > 1.1 > f[0] + g[0]


@pytest.mark.slow
def test_a_front_in_two_parts_under_a_condition():
    """A wave as a border leaves a gap: what ends in it is dropped, no point is beaten by another."""

    def wave(t):
        return 1.0 - t - 0.25 * jnp.sin(4 * jnp.pi * t)

    front = pareto(
        two(lambda x: x[0], lambda x: x[1], start=(0.5, 1.2), margins=lambda x: x[1] - wave(x[0]), low=0.0, high=1.5), 9
    )
    f, g = front.values.T
    assert g == pytest.approx(np.asarray(wave(f)), abs=1e-6) and np.all(np.diff(g) < 0)
    t = np.linspace(0, 1.5, 3001)
    border = np.maximum(np.asarray(wave(t)), 0.0)
    assert all(border[t <= a].min() >= b - 1e-5 for a, b in front.values) and len(front.points) + front.dropped == 11


def test_what_others_beat_and_what_is_no_minimum_is_dropped():
    def point(f, g, status=Status.LEAST):
        return FrontPoint((f, g), {}, np.zeros(1), status)

    kept = [point(0.0, 1.0), point(0.4, 0.5), point(1.0, 0.0)]
    beaten = [point(0.2, 1.0), point(0.5, 0.6), point(0.6, 0.5), point(1.1, 0.0)]
    near = np.array([1e-3, 1e-3])
    others = [point(0.0, 0.0, Status.STEPS), point(0.4004, 0.4999)]
    assert _not_dominated([*beaten, *reversed(kept), *others], near) == kept
    nearly = point(0.4004, 0.4)
    assert _not_dominated([*kept, nearly], near) == [kept[0], nearly, kept[2]]


@pytest.mark.slow
def test_what_is_no_front_is_refused():
    p = two(lambda x: x[0], lambda x: x[1])
    with pytest.raises(mbs.ModelError, match="1 objectives"):
        pareto(replace(p, objectives=p.objectives[:1]))
    with pytest.raises(mbs.ModelError, match="ask for 1 or more"):
        pareto(p, 0)
    with pytest.raises(mbs.ModelError, match="meets the conditions"):
        pareto(two(lambda x: x[0], lambda x: x[1], margins=lambda x: -1 - x @ x), 2)


@pytest.mark.slow
def test_the_command_leaves_a_front(command, tmp_path):  # noqa: F811
    """Two distances of the mean travel of a cart; their roots add up to the square root of one half times 0.2."""
    wish = SLIDER[SLIDER.index("[[design.objectives]]") :].replace("target = 0.3", "target = 0.9\nsamples = 8")
    file, out = tmp_path / "slider.toml", tmp_path / "out"
    text = SLIDER[: SLIDER.index("[[design.objectives]]")].replace("[design]", "[design]\nstarts = 1")
    file.write_text(text + wish + wish.replace("0.9", "1.1"), encoding="utf-8")
    done = command("synthesize", file, "--out", out, "--pareto", "2")
    assert done.returncode == 0, done.stderr
    assert "4 designs, none better than another in both objectives" in " ".join(done.stdout.split())
    record = json.loads((out / "front.json").read_text(encoding="utf-8"))
    assert record["objectives"] == ["output_value_1", "output_value_2"]
    values = np.array([p["values"] for p in record["points"]])
    assert np.sqrt(np.maximum(values, 0.0)).sum(axis=1) == pytest.approx(0.2 / np.sqrt(2), rel=1e-3)
    assert mbs.set(mbs.load(file), record["points"][0]["parameters"])
    page = (out / "front.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and "damper.damping" in page and page.startswith("<!doctype html>")
    again = command("synthesize", file, "--out", out)
    assert again.returncode == 1 and "exists already" in again.stderr
