"""Models, shapes and poses with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.model.compounds import Compound as Compound
from jaxmbs.model.errors import ModelError as ModelError
from jaxmbs.model.errors import ModelWarning as ModelWarning
from jaxmbs.model.flexible_bodies import Part as Part
from jaxmbs.model.mode import Mode as Mode
from jaxmbs.model.model import Model as Model
from jaxmbs.model.model import derivative as derivative
from jaxmbs.model.model import get as get
from jaxmbs.model.pose import BodyPoses as BodyPoses
from jaxmbs.model.pose import Pose as Pose
from jaxmbs.model.rotations import rotation as rotation
from jaxmbs.model.solids import Ball as Ball
from jaxmbs.model.solids import Box as Box
from jaxmbs.model.solids import Capsule as Capsule
from jaxmbs.model.solids import Mesh as Mesh
from jaxmbs.model.solids import Tube as Tube
from jaxmbs.model.walls import Cone as Cone
from jaxmbs.model.walls import Disc as Disc
from jaxmbs.model.walls import Hull as Hull
from jaxmbs.model.walls import Panel as Panel
