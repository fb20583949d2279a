"""Monte Carlo studies: samples are pure functions of the study and their index.

A study file is TOML; examples/stage_separation.toml has every part. Units are SI and radians, unless a table
has a `unit`. A wrong key, name, number or unit is an error that names its path and the remedy, before anything runs.

    criteria = ["clearance > 0.02 m"]   before the first [table], like `modules`
    [mechanism]                         and [[mechanism.bodies]], .joints, .loops, .forces, .constraints
    [initial.JOINT]                     state at t = 0: q, and v or world_velocity = {angular = [...], linear = [...]}
    [dispersions."TARGET"]              TARGET: a parameter ("stage.mass", "pusher_1.delay", "gravity", ...) or
                                        an initial value ("initial.JOINT.q", ".v"; of a Free joint ".q.position",
                                        ".q.attitude", ".v.angular", ".v.linear"). Any other name needs
                                        target = "TARGET"; several dispersions of one target act in the file's order
    [[correlations]]                    correlated draws
    [simulation], [study], [outputs.NAME]

`jaxmbs keys all` prints every key with its meaning, unit and default, `jaxmbs keys PATH` those of a table or type. A
dispersion is refused if any draw could make a mass or an inertia unphysical, or if half of the draws or more make
another target unphysical; if fewer draws do so, these samples get the status "unphysical".

Results are in DIR/results.zarr, for `xarray.open_zarr`: every output and every draw by name, `status`, `energy_error`
and `constraint_error`, along the dimension `sample`. An output or draw whose name is already taken in the results has
"(output)" or "(draw)" added to it: "status (output)".
"""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.study.public import *  # noqa: F403

_lazy(__name__)  # a command that computes nothing starts without JAX
