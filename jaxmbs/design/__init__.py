"""Design synthesis: parameters found by gradient-based optimisation.

    problem = mbs.design.Problem(model, free=[...], objectives=[...])
    design = mbs.design.synthesize(problem)
    better = mbs.set(model, design.parameters)

`Free`, `Factor` and `MassDistribution` name the parameters that may change, with bounds, equalities and groups; all
others stay fixed, and every inertia that the optimiser tries is physically possible. Searches from many starting points
run at once. The result reports why the search stopped, which bounds are active, which combinations of parameters the
conditions fix, and by which relations.
"""

from jaxmbs.design.failed_samples import FailedSamples as FailedSamples
from jaxmbs.design.findings import Findings as Findings
from jaxmbs.design.findings import Relation as Relation
from jaxmbs.design.free import Factor as Factor
from jaxmbs.design.free import Free as Free
from jaxmbs.design.front import Front as Front
from jaxmbs.design.front import FrontPoint as FrontPoint
from jaxmbs.design.front import pareto as pareto
from jaxmbs.design.information import Information as Information
from jaxmbs.design.information import information as information
from jaxmbs.design.mass_distribution import MassDistribution as MassDistribution
from jaxmbs.design.objectives.public import *  # noqa: F403
from jaxmbs.design.problem import Problem as Problem
from jaxmbs.design.status import Status as Status
from jaxmbs.design.synthesize import Design as Design
from jaxmbs.design.synthesize import synthesize as synthesize
from jaxmbs.design.uncertainty import Estimate as Estimate
from jaxmbs.design.uncertainty import Uncertainty as Uncertainty
from jaxmbs.design.uncertainty import profile as profile
from jaxmbs.design.variables import Coordinate as Coordinate
