"""Motions as binary glTF (GLB), the format that viewers, Blender and browsers read.

In a mechanism z points up, in glTF y points up: the root node rotates one to the other. Everything below that node is
in the mechanism's own axes, in metres and seconds.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbs.view.shapes import Drawn, Triangles

FLOAT, INDEX = 5126, 5125  # component types
Z_UP = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]  # x, y, z, w


class Builder:
    """Collects nodes, meshes and channels; `content` returns the file."""

    def __init__(self, library: Mapping[str, Triangles], extras: Mapping[str, Any]):
        self.library, self.binary = library, bytearray()
        self.views: list[Any] = []
        self.accessors: list[Any] = []
        self.materials: list[Any] = []
        self.meshes: list[Any] = []
        self.nodes: list[Any] = [{"name": "z up", "rotation": Z_UP, "children": []}]
        self.channels: list[Any] = []
        self.samplers: list[Any] = []
        self.known: dict[Any, int] = {}
        self.extras = dict(extras)

    def accessor(self, x: np.ndarray, kind: str, bounds: bool = False) -> int:
        """Add an array and return its index; bounds: whether to add its minimum and maximum."""
        data = np.ascontiguousarray(x, np.uint32 if x.dtype.kind in "iu" else np.float32)
        self.views.append({"buffer": 0, "byteOffset": len(self.binary), "byteLength": data.nbytes})
        self.binary += data.tobytes()
        entry = {
            "bufferView": len(self.views) - 1, "componentType": INDEX if data.dtype == np.uint32 else FLOAT,
            "count": data.size if kind == "SCALAR" else len(data), "type": kind,
        }  # fmt: skip
        if bounds:
            flat = data.reshape(entry["count"], -1)
            entry |= {"min": flat.min(0).astype(float).tolist(), "max": flat.max(0).astype(float).tolist()}
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def mesh(self, key: str, color: str, opacity: float, displacements: np.ndarray | None = None) -> int:
        """Index of the mesh of the triangles `key` in this colour; it is added if it is new. displacements (n, V, 3): of
        its vertices in n shapes, which become morph targets."""
        if (key, color, opacity) in self.known:
            return self.known[key, color, opacity]
        if key not in self.known:
            vertices, faces = self.library[key]
            points = vertices[faces].reshape(-1, 3)  # triangles share no vertices: each has one normal for its three
            if key == "sphere":  # smooth: its vertices are also its normals
                faceted = points
            else:
                faceted = np.repeat(np.cross(points[1::3] - points[::3], points[2::3] - points[::3]), 3, axis=0)
            lengths = np.linalg.norm(faceted, axis=1, keepdims=True)
            normals = np.where(lengths > 0, faceted / np.where(lengths > 0, lengths, 1), [0, 0, 1])
            self.known[key] = len(self.accessors)
            self.accessor(points, "VEC3", bounds=True)
            self.accessor(normals, "VEC3")
            for moved in () if displacements is None else displacements:
                self.accessor(moved[faces].reshape(-1, 3), "VEC3", bounds=True)
        first = self.known[key]
        rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        material: dict[str, Any] = {
            "pbrMetallicRoughness": {"baseColorFactor": [*linear, opacity], "metallicFactor": 0.0}
        }
        material |= {"doubleSided": True} | ({"alphaMode": "BLEND"} if opacity < 1 else {})
        self.materials.append(material)
        attributes = {"POSITION": first, "NORMAL": first + 1}
        mesh: dict[str, Any] = {"primitives": [{"attributes": attributes, "material": len(self.materials) - 1}]}
        if displacements is not None:
            n = len(displacements)
            mesh["primitives"][0]["targets"] = [{"POSITION": first + 2 + k} for k in range(n)]
            mesh["weights"] = [0.0] * n
        self.meshes.append(mesh)
        self.known[key, color, opacity] = len(self.meshes) - 1
        return len(self.meshes) - 1

    def add(self, name: str, parent: int = 0, **more: Any) -> int:
        """Add a node under another and return its index."""
        self.nodes.append({"name": name, **more})
        self.nodes[parent].setdefault("children", []).append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def shape(
        self, d: Drawn, parent: int, color: str, opacity: float, times: int = 0, weights: np.ndarray | None = None
    ) -> None:
        """Add a shape under the node of its body. times (an accessor), weights (rows, n): if it bends, its modal
        coordinates."""
        more = {"matrix": d.matrix.T.ravel().tolist(), "mesh": self.mesh(d.key, color, opacity, d.displacements)}
        node = self.add("shape", parent, **more)
        if d.displacements is not None and weights is not None:
            self.channel(node, "weights", times, weights.reshape(-1), "SCALAR")

    def channel(self, node: int, path: str, times: int, x: np.ndarray, kind: str) -> None:
        """Animate the property `path` of a node: it takes the values x at the times of an accessor."""
        self.samplers.append({"input": times, "output": self.accessor(x, kind), "interpolation": "LINEAR"})
        self.channels.append({"sampler": len(self.samplers) - 1, "target": {"node": node, "path": path}})

    def moving(self, name: str, parent: int, times: int, position: np.ndarray, rotation: np.ndarray) -> int:
        """Add a node that moves, and return its index: position (rows, 3), rotation (rows, 3, 3); times: an accessor."""
        turns = continuous(rotation)
        node = self.add(name, parent, translation=_floats(position[0]), rotation=_floats(turns[0]))
        for path, x, kind in (("translation", position, "VEC3"), ("rotation", turns, "VEC4")):
            if np.all(np.abs(x - x[0]) < 1e-12):
                continue  # it does not change
            self.channel(node, path, times, x, kind)
        return node

    def content(self) -> bytes:
        """The bytes of the file."""
        if not self.binary:
            self.accessor(np.zeros(1), "SCALAR", bounds=True)
        tree: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "jaxmbs"},
            "scene": 0, "scenes": [{"nodes": [0], "extras": self.extras}], "nodes": self.nodes,
            "buffers": [{"byteLength": len(self.binary)}], "bufferViews": self.views, "accessors": self.accessors,
        }  # fmt: skip
        tree |= {"meshes": self.meshes, "materials": self.materials} if self.meshes else {}
        if self.channels:
            tree["animations"] = [{"name": "motion", "channels": self.channels, "samplers": self.samplers}]
        said = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()
        said += b" " * (-len(said) % 4)
        data = bytes(self.binary) + b"\0" * (-len(self.binary) % 4)
        head = struct.pack("<4sII", b"glTF", 2, 28 + len(said) + len(data))
        return b"".join(
            [head, struct.pack("<I4s", len(said), b"JSON"), said, struct.pack("<I4s", len(data), b"BIN\0"), data]
        )


def continuous(rotation: np.ndarray) -> np.ndarray:
    """Quaternions x, y, z, w (rows, 4), with signs such that no row has a negative dot product with the next."""
    from scipy.spatial.transform import Rotation

    q = Rotation.from_matrix(rotation).as_quat()
    flips = np.cumprod(np.where(np.sum(q[1:] * q[:-1], axis=1) < 0, -1.0, 1.0))
    return q * np.concatenate([[1.0], flips])[:, None]


def _floats(x: Sequence[float] | np.ndarray) -> list[float]:
    return [float(v) for v in x]
