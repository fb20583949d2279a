"""Building blocks of user-defined elements: base classes, declared fields and their kinds.

    from jaxmbs.elements import Force, Kind, element, field

    @element
    class Magnet(Force):
        \"\"\"Repels two bodies by strength / distance².\"\"\"

        body_a: str = field(Kind.BODY_OR_WORLD, "", "one body")
        body_b: str = field(Kind.BODY_OR_WORLD, "", "other body")
        strength: Any = field(Kind.NOT_NEGATIVE, "N m2", "force times distance squared")

        def apply(self, p, scene, loads): ...

The declarations provide the parameters ("magnet.strength"), their checks, the table `type = "magnet"` of a file, the units
of dispersions and the list of fields in the docstring. In Python such a class can be used at once. A file can use it if an
installed package names it as an entry point of the group "jaxmbs.elements", or if `modules = ["my_elements.py"]` names its
module and the reader trusts the file. Functions (of External, General, ...) are named in the same way:
`fn = "my_elements.drag"`.
"""

from jaxmbs.model.constraints import Constraint as Constraint
from jaxmbs.model.control import Sensor as Sensor
from jaxmbs.model.events import Action as Action
from jaxmbs.model.events import Condition as Condition
from jaxmbs.model.events.base import Instant as Instant
from jaxmbs.model.field_rules import Kind as Kind
from jaxmbs.model.fields import Element as Element
from jaxmbs.model.fields import element as element
from jaxmbs.model.fields import field as field
from jaxmbs.model.fields import state as state
from jaxmbs.model.forces import Force as Force
from jaxmbs.model.forces import Surface as Surface
from jaxmbs.model.forces.base import Loads as Loads
from jaxmbs.model.forces.base import Scene as Scene
from jaxmbs.model.forces.sampled_force import SampledForce as SampledForce
from jaxmbs.model.joints import Coordinate as Coordinate
from jaxmbs.model.joints import Joint as Joint
from jaxmbs.model.joints import JointMotion as JointMotion
from jaxmbs.model.joints import equations as equations
from jaxmbs.model.rows import CoordinateRow as CoordinateRow
from jaxmbs.model.rows import Row as Row
