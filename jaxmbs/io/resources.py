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
    """The file that the file at `path` names: relative to its folder, or "package://PACKAGE/..." and "model://MODEL/...",
    which are looked for in the folders above and in those of SEARCHED. The URI itself if there is no such file, "" if it
    must not be read: without `trust`, it has to lie in the file's folder, in its package, or in a folder of SEARCHED."""
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
    """The file of a model, which may be named by its folder, whose model.config names the file."""
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
