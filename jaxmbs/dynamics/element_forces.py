"""What each force element does to the bodies and joints."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.loads import elements
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.given import Coordinates, Number, Rates
from jaxmbs.model.shapes import Float


class ElementForce(NamedTuple):
    """The action of one force element. wrenches (n, 6): on all bodies in world axes, torque [N m] about the origin of the
    body's frame, then force [N]; generalized (nv,): in addition, its generalized forces on joints of the tree [N, N m].

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    >>> print(mbs.element_forces(mech.build(), [0.0, 0.2], [0.0, 0.0])["coil"].generalized)
    [ 0. -1.]
    """

    wrenches: Float[jax.Array, "bodies 6"]
    generalized: Float[jax.Array, " nv"]


@compiles_itself()
def element_forces(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> dict[str, ElementForce]:
    """{name: ElementForce} of all force elements; zero where one is switched off. Bodies are in the order of
    model.body_names.

    q (nq,), v (nv,). Raises ModelError for wrong shapes.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("strut", mbs.LinearSpring("lower", "world", point_b=(3, 0, 0), stiffness=10.0))
    >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    >>> found = mbs.element_forces(mech.build(), [0.0, 0.2], [0.0, 0.0])
    >>> print(found["strut"].wrenches[1], found["coil"].generalized)
    [ 0.  0.  0. 30.  0. 10.] [ 0. -1.]
    """
    q, v = vectors(model, q=q, v=v)
    dtype = q.dtype
    state = State(Tree(model, dtype), q, v, t, mode)
    scene, s = state.scene, state.tree.structure
    zero, found = jnp.zeros((), dtype), {}
    for name, element, numbers, seen, on in elements(scene, mode):
        on_body, on_joint, on_all = scene.action(element, numbers, seen)
        wrenches = {body: [zero] * 6 for body in model.body_names}
        along = [zero] * model.nv if not on_all else [jnp.asarray(x, dtype) for x in on_all]
        parts = list(on_body.items())
        for joint, values in on_joint.items():
            if joint in s.loop_by_name:
                parts += scene.cut_wrenches(joint, values)[0].items()
                continue
            first = s.v_slices[s.find_joint(joint)].start
            for k, value in enumerate(values, first):
                along[k] = along[k] + value
        for body, F in parts:
            at = scene.body(body)
            R, moment = at.placement.rotation, F.moment - at.body.position.cross(F.force)
            wrenches[body] = [a + b for a, b in zip(wrenches[body], (*(R @ moment), *(R @ F.force)), strict=True)]
        whole = jnp.stack([jnp.stack([jnp.asarray(x, dtype) for x in row]) for row in wrenches.values()])
        pushes = jnp.stack(along) if along else jnp.zeros(0, dtype)
        found[name] = ElementForce(*(_switched(x, on) for x in (whole, pushes)))
    return found


def _switched(x: jax.Array, on: Any) -> jax.Array:
    return x if on is True else jnp.where(on, x, 0.0)
