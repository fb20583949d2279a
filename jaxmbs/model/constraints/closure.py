"""General joints as cut joints: constraints f(z*, G*, t) = 0 on the placement, differentiated by JAX [Y 3.194]."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.constraints.base import Row
from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints.general import General
from jaxmbs.spatial import Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar


def general_rows(joint: General, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
    """Rows of joint.closure at the placement X, moving with V in axes of b."""
    dtype = jnp.result_type(*(x for x in (*X.rotation, *X.position, *V.scalars()) if isinstance(x, jax.Array)))
    z, R = _array(X.position, dtype), _array(X.rotation, dtype).reshape(3, 3)
    rate, ta = _array(V.scalars(), dtype), jnp.asarray(t, dtype)

    def f(z: Any, R: Any, t: Any) -> Any:
        found = jnp.asarray(joint.closure(z, R, t), dtype)  # type: ignore[misc]
        if found.shape != (6 - joint.dof,):
            raise ModelError(
                f"General joint: closure returned shape {found.shape}; with dof = {joint.dof} it is ({6 - joint.dof},)"
            )
        return found

    def moved(z: Any, R: Any, V: Any) -> tuple[Any, Any]:
        """Rates of z and R under a motion V in axes of b."""
        return R @ V[3:], R @ _skew(V[:3])

    def along(z: Any, R: Any, t: Any, V: Any, flow: Any) -> Any:
        return jax.jvp(f, (z, R, t), (*moved(z, R, V), flow))[1]

    def parts(z: Any, R: Any, t: Any) -> tuple[Any, Any]:
        one, none = jnp.ones_like(t), jnp.zeros(6, dtype)
        columns = [along(z, R, t, e, jnp.zeros_like(t)) for e in jnp.eye(6, dtype=dtype)]
        return jnp.stack(columns, axis=1), along(z, R, t, none, one)

    (wrench, own), (turning, change) = jax.jvp(parts, (z, R, ta), (*moved(z, R, rate), jnp.ones_like(ta)))
    residual = f(z, R, ta)
    return tuple(
        Row(_force(wrench[k]), _force(turning[k]), residual[k], own[k], change[k]) for k in range(6 - joint.dof)
    )


def _array(x: Any, dtype: Any) -> Any:
    return jnp.stack([jnp.asarray(c, dtype) for c in x])


def _skew(w: Any) -> Any:
    o = jnp.zeros_like(w[0])
    return jnp.stack([jnp.stack([o, -w[2], w[1]]), jnp.stack([w[2], o, -w[0]]), jnp.stack([-w[1], w[0], o])])


def _force(x: Any) -> Force:
    return Force(Vector3(x[0], x[1], x[2]), Vector3(x[3], x[4], x[5]))
