"""Files that the description of a robot names by URIs."""

from __future__ import annotations

import os
from pathlib import Path

from jaxmbs.io.names import exists, within
from jaxmbs.io.xml import opened

PACKAGES = ("package.xml", "model.config")  # files at the root of a package of ROS, and of a model of Gazebo
SCHEMES = ("package://", "model://")
SEARCHED = ("SDF_PATH", "GZ_SIM_RESOURCE_PATH")  # environment variables with folders that the user has chosen


def resource(path: Path, uri: str, trust: bool) -> str:
    """The file that a URI in the file at `path` names. A path is relative to this file's folder, or to a folder of SEARCHED;
    "package://PACKAGE/..." and "model://MODEL/..." are looked for in the folders above and in those of SEARCHED, and the
    URI is returned as it is if they are not found. The result is "" if the file must not be read: without `trust`, it has
    to lie in the folder of the file at `path`, in its package, or in a folder of SEARCHED."""
    here = path.resolve().parent
    above = (here, *here.parents)
    chosen = [Path(x) for name in SEARCHED for x in os.environ.get(name, "").split(os.pathsep) if x]
    found = here / uri.removeprefix("file://")
    scheme = next((s for s in SCHEMES if uri.startswith(s)), None)
    if scheme:
        tail = uri.removeprefix(scheme)
        tried = (*(f / x for f in above for x in (tail, tail.partition("/")[2]) if x), *(f / tail for f in chosen))
        match = next((x for x in tried if exists(x)), None)
        if match is None:
            return uri
        found = match
    elif not exists(found):
        found = next((f / uri for f in chosen if exists(f / uri)), found)
    package = next((f for f in above if any((f / name).is_file() for name in PACKAGES)), here)
    allowed = trust or any(within(f, found) for f in (here, package, *chosen))
    return str(found) if allowed else ""


def model_file(found: Path) -> Path | None:
    """The file of a model at `found`: this file itself or, in a folder, the last existing file that its model.config names,
    or model.sdf if it has no model.config. None if there is none."""
    if not exists(found):
        return None
    if found.is_file():
        return found.resolve()
    config = found / "model.config"
    if config.is_file():
        named = [e.text or "" for e in opened(config, "model", "a description of a model").findall("sdf")]
        files = [p for name in reversed(named) if exists(p := found / name.strip()) and p.is_file()]
        return files[0].resolve() if files else None
    return (found / "model.sdf").resolve() if (found / "model.sdf").is_file() else None
