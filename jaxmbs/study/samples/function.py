"""A sample of a study as a function of one instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from jaxmbs.building.changes import varied
from jaxmbs.errors import ModelError
from jaxmbs.study.folder.layout import labels
from jaxmbs.study.problem.study import Study
from jaxmbs.study.samples.batch import is_random, precision, sample_of, status_of


def sample_function(study: Study) -> Callable[..., dict[str, Any]]:
    """The function draws (k,) -> {output: value in SI, "status": status} of one sample: a pure function that can be mapped
    over rows, differentiated, and written as a program for other software by `mbs.export`.

    study: if its motions have random numbers of their own, such as noise of sensors, the function is (draws, key). The draws
    are those of `study.dispersions.inputs`, in this order and in the units of their dispersions; those of a run are the
    variables of its results.

    >>> study = mbs.study.Study(
    ...     model=mbs.library.double_pendulum().build(),
    ...     initial={"shoulder": {"q": [0.5]}},
    ...     simulation={"t_end": 0.5, "dt": 0.01},
    ...     dispersions={"lower.mass": mbs.study.Normal(apply="multiply", std=0.1)},
    ...     outputs={"speed": mbs.study.outputs.JointVelocity("elbow", reduce="max")},
    ... )
    >>> sample = mbs.study.sample_function(study)
    >>> study.dispersions.inputs, mbs.jit(sample, in_axes=0)(jnp.array([[0.9], [1.1]]))["speed"].round(3).tolist()
    (('lower.mass',), [0.951, 0.952])
    """
    random = is_random(study)

    def sample(draws: Any, key: Any = None) -> dict[str, Any]:
        if random and key is None:
            raise ModelError("sample_function: the study has random numbers of its own; pass draws and a key")
        draws = jnp.asarray(draws)
        dtype = draws.dtype if jnp.issubdtype(draws.dtype, jnp.floating) else precision()
        numbers = study.dispersions.apply(draws.astype(dtype), dtype)
        batch, axes = varied(study.model, {name: x[None] for name, x in numbers.parameters.items()})
        own = {name: x[0] if axes.overrides[name] == 0 else x for name, x in batch.overrides.items()}
        found = sample_of(study, dtype)(
            replace(batch, overrides=own), numbers.q, numbers.v, *((key,) if random else ())
        )
        label = labels(study).outputs
        status = status_of(study, batch, found["status"][None])[0]
        return {name: found[label[name]] for name in study.outputs} | {"status": status}

    return sample
