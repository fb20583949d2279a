"""Readers and writers of files with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.io.collisions import collision_shapes as collision_shapes
from jaxmbs.io.fmu import from_fmu as from_fmu
from jaxmbs.io.loading import load as load
from jaxmbs.io.mjcf import from_mjcf as from_mjcf
from jaxmbs.io.save import save as save
from jaxmbs.io.sdf import from_sdf as from_sdf
from jaxmbs.io.urdf import from_urdf as from_urdf
from jaxmbs.io.usd import from_usd as from_usd
