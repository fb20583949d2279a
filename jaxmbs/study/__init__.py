"""Monte Carlo studies: samples that are pure functions of the study and their index.

A study file is TOML; examples/stage_separation.toml has every part of one. SI units and radians, unless a table has
a `unit`. A wrong key, name, number or unit is an error that names its path and the remedy, before anything runs.

    criteria = ["clearance > 0.02 m"]   list: output, one of < <= > >=, number, unit; before the first [table]

    [mechanism]                         name, gravity
    [[mechanism.bodies]]                name, mass, com, inertia (three principal values or 3x3)
    [[mechanism.joints]]                name, type, parent, child, parent_pose, child_pose = {position, rotation};
                                        type: fixed revolute prismatic helical cylindrical universal spherical
                                        planar free, each with the fields of the class (axis, pitch, ...)
    [[mechanism.forces]]                name, type: linear_spring torsion_spring damper bushing pusher thruster
                                        contact central_gravity, each with the fields of the class
    [initial.JOINT]                     q, v (default: neutral position, at rest)

    [dispersions."TARGET"]              TARGET: a parameter ("stage.mass", "pusher_1.delay", "gravity", ...) or
                                        an initial value ("initial.JOINT.q", ".v"; of a Free joint ".q.position",
                                        ".q.attitude", ".v.angular", ".v.linear"). Under any other name, with
                                        target = "TARGET": several act on one target in the file's order
      distribution                      normal (mean, std), truncated_normal (and low, high), uniform (low,
                                        high), lognormal (median, sigma); mean and median default to no change
      apply                             replace, add, multiply, tilt; default: tilt (about the cross axes) for
                                        directions and rotations, multiply (principal second moments) for
                                        inertias, else replace
      unit, common                      unit of the numbers; one draw for all components

    [simulation]                        t_end, dt
    [study]                             seed
    [outputs.NAME]                      type: rim_clearance (rim, shell), angular_rate (body, part, axis,
                                        relative_to), distance and relative_velocity (body_a, body_b, point_a,
                                        point_b, direction), joint_position and joint_velocity (joint, component)
      reduce                            final, min, max, time_of_min, time_of_max; time_out of a rim_clearance
      unit                              the one that reports show

Results are in DIR/results.zarr, for `xarray.open_zarr`: every output and every draw by name, `status`, `energy_error`,
`constraint_error`, along `sample`.
"""

from jaxmbs.io.errors import InputError as InputError
from jaxmbs.study.problem import Study as Study
from jaxmbs.study.problem import read as read
from jaxmbs.study.repeat import History as History
from jaxmbs.study.repeat import repeat as repeat
from jaxmbs.study.report import report as report
from jaxmbs.study.run import resume as resume
from jaxmbs.study.run import run as run
from jaxmbs.study.store import Store as Store
