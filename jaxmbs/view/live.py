"""A mechanism in the browser, with sliders; the page is served by viser."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.building import set as changed
from jaxmbs.dynamics import body_poses, integrate
from jaxmbs.errors import ModelError
from jaxmbs.model import Model, get
from jaxmbs.model.given import Coordinates
from jaxmbs.view.deformed import enlarged, said
from jaxmbs.view.shapes import scene_of

if TYPE_CHECKING:
    from jaxmbs.simulate import Solution

STEPS = 1000  # number of steps of a slider


def view(
    model: Model,
    q: Coordinates | None = None,
    *,
    parameters: Mapping[str, tuple[float, float]] | None = None,
    motion: Solution | None = None,
    port: int = 8080,
    deformation_scale: float = 1.0,
) -> Viewer:
    """Show a mechanism in the browser, with sliders for its joints; returns a `Viewer`, which serves until stopped.

    q (nq,): initial configuration (None: the neutral one); parameters: {name: (low, high)} of the parameters that get
    sliders, one for each component; motion: one instance, which gets a slider for its time; port: of the page at
    http://localhost:PORT (or the next available one, which is printed); deformation_scale: factor of the modal coordinates
    of flexible bodies in the picture, which the page states; sliders have the coordinates as they are. A joint with more
    coordinates than rates (quaternions) has a slider for each component of v, which rotates or shifts it from its place in
    q. Loops and constraints remain satisfied: the moved joint keeps its coordinates, the others follow, and a message
    reports if that is impossible. Needs viser (`pip install 'jaxmbs[view]'`). Raises ModelError without it, for a wrong
    shape, an unknown parameter, a batch, and a scale that is negative or not finite.

    >>> viewer = mbs.view(mbs.library.four_bar().build(), parameters={"crank.mass": (0.1, 2.0)})  # doctest: +SKIP
    >>> viewer.stop()  # doctest: +SKIP
    """
    if motion is not None and (np.ndim(motion.t) != 1 or np.shape(motion.q)[-1] != model.nq):
        raise ModelError(f"view: motion has q of shape {np.shape(motion.q)}; needs one instance, (rows, {model.nq})")
    start = np.asarray(model.neutral() if q is None else q, float)
    if start.shape != (model.nq,):
        raise ModelError(f"view: q has shape {start.shape}; needs ({model.nq},)")
    said(model, deformation_scale, "view")  # refuses a scale that is negative or not finite
    try:
        import viser  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModelError("view needs the package viser: pip install 'jaxmbs[view]'") from error
    limits = dict(parameters or {})
    values = {name: np.asarray(get(model, name), float) for name in limits}
    server = viser.ViserServer(host="localhost", port=port, verbose=False)
    return Viewer(server, model, start, limits, values, motion, deformation_scale)


class Viewer:
    """The page that `view` shows: q (nq,) and model are the state set by the sliders. Only `view` creates it.

    server: of viser; start (nq,): initial configuration; limits, values: ranges and values of the parameters that have
    sliders; motion: the motion that has a slider for its time, or None; deformation_scale: factor of modal coordinates in
    the picture.

    >>> viewer = mbs.view(mbs.library.double_pendulum().build())  # doctest: +SKIP
    >>> viewer.q, viewer.model  # doctest: +SKIP
    """

    model: Model
    q: np.ndarray

    def __init__(
        self,
        server: Any,
        model: Model,
        start: np.ndarray,
        limits: Any,
        values: Any,
        motion: Any,
        deformation_scale: float = 1.0,
    ):
        self._scale, self._title = deformation_scale, f"{model.name}{said(model, deformation_scale, 'view')}"
        self.model, self.q, self._server, self._values, self._motion = model, start, server, values, motion
        self._busy = threading.RLock()  # sliders report their moves in threads of the server
        self._following = False  # True while the program sets the sliders, whose callbacks then do nothing
        self._handles: list[Any] = []
        s, gui = model.structure, server.gui
        plain = [np.arange(x.start, x.stop) for x in s.q_slices]
        own = [len(x) == y.stop - y.start for x, y in zip(plain, s.v_slices, strict=True)]
        self._base = start.copy()  # from where sliders move the joints; zero where a slider sets q itself
        self._at: dict[int, int] = {}  # {index in v: index in q} of the sliders that set q itself
        self._tangent = np.zeros(model.nv)
        for link, places, v, is_plain in zip(s.links, plain, s.v_slices, own, strict=True):
            if is_plain:
                self._at |= dict(zip(range(v.start, v.stop), places.tolist(), strict=True))
                self._base[places], self._tangent[v] = 0.0, start[places]
            for k in range(v.start, v.stop):
                component = model.coordinates[self._at[k]] if is_plain else model.speeds[k]
                reach = np.pi if component.unit.startswith("rad") else 2.0
                self._slide(gui, component.name, (-reach, reach), self._tangent[k], self._mover(k, link.name))
        for name, (low, high) in limits.items():
            for k, value in enumerate(np.ravel(values[name])):
                label = name if np.ndim(values[name]) == 0 else f"{name}[{k}]"
                self._slide(gui, label, (low, high), value, self._setter(name, k))
        if motion is not None:
            ends = (float(motion.t[0]), float(motion.t[-1]))
            self._slide(gui, "t [s]", ends, ends[0], self._scrub)
        self._said = gui.add_markdown(self._title)
        self._build()
        self._place()

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()

    def _slide(
        self, gui: Any, label: str, ends: tuple[float, float], value: float, moved: Callable[[float], None]
    ) -> None:
        low, high = min(ends[0], value), max(ends[1], value)
        handle = gui.add_slider(label, low, high, (high - low) / STEPS, float(value))

        @handle.on_update
        def _(_: Any) -> None:
            with self._busy:
                if not self._following:
                    moved(float(handle.value))

        self._handles.append(handle)

    def _mover(self, k: int, joint: str) -> Callable[[float], None]:
        def moved(value: float) -> None:
            self._tangent[k] = value
            self.q = np.asarray(integrate(self.model, jnp.asarray(self._base), jnp.asarray(self._tangent)), float)
            self._close(joint)
            self._place()

        return moved

    def _setter(self, name: str, k: int) -> Callable[[float], None]:
        def moved(value: float) -> None:
            wanted = self._values[name].copy()
            wanted.reshape(-1)[k] = value
            try:
                self.model = changed(self.model, {name: wanted})
            except ModelError as error:
                self._said.content = str(error)
                return
            self._values[name] = wanted
            self._close(None)
            self._build()
            self._place()

        return moved

    def _scrub(self, t: float) -> None:
        row = int(np.argmin(np.abs(np.asarray(self._motion.t) - t)))
        self.q = np.asarray(self._motion.q[row], float)
        self._follow()
        self._place()

    def _close(self, held: str | None) -> None:
        """Assemble q; held: the joint that was moved, which keeps its coordinates."""
        if not self.model.structure.constrained:
            return
        from jaxmbs.simulate import Status, assemble

        q, _, status, _ = assemble(self.model, self.q, fixed=[held] if held else [])
        found = Status(int(status))
        self._said.content = f"{self._title}: {found.message}"
        if found is not Status.UNREACHABLE:
            self.q = np.asarray(q, float)
            self._follow()

    def _follow(self) -> None:
        """Make the sliders agree with q. Those that show coordinates are set. Those that rotate or shift a joint from
        its base stay as they are, and the base moves instead."""
        self._base = np.array(integrate(self.model, jnp.asarray(self.q), jnp.asarray(-self._tangent)), float)
        self._base[list(self._at.values())] = 0.0
        self._following = True
        for k, place in self._at.items():
            self._tangent[k] = self.q[place]
            handle = self._handles[k]
            handle.value = float(np.clip(self.q[place], handle.min, handle.max))
        self._following = False

    def _build(self) -> None:
        """Add all shapes to the scene, each under the frame of its body."""
        scene, (drawn, library) = self._server.scene, scene_of(self.model)
        scene.reset()
        self._bent: list[Callable[[np.ndarray], Any]] = []
        scene.set_up_direction("+z")
        self._frames = [scene.add_frame(f"/{name}", show_axes=False) for name in self.model.body_names]
        for k, d in enumerate(drawn):
            faces = library[d.key][1]
            parent = f"/{self.model.body_names[d.body]}" if d.body >= 0 else ""
            color = tuple(int(d.color[i : i + 2], 16) for i in (1, 3, 5))
            add = functools.partial(
                scene.add_mesh_simple, f"{parent}/shape_{k}", faces=faces, color=color, side="double", flat_shading=True
            )
            if d.displacements is None:
                add(d.vertices(library, self.q))
            else:  # a mesh of the same name takes its place whenever it bends
                self._bent.append(lambda q, add=add, d=d: add(d.vertices(library, q)))

    def _place(self) -> None:
        from scipy.spatial.transform import Rotation

        shown = enlarged(self.model, self.q, self._scale)
        poses = body_poses(self.model, jnp.asarray(shown))
        turned = Rotation.from_matrix(np.asarray(poses.rotation, float)).as_quat(scalar_first=True)
        for frame, p, w in zip(self._frames, np.asarray(poses.position, float), turned, strict=True):
            frame.position, frame.wxyz = p, w
        for bend in self._bent:
            bend(shown)
