"""Distributions with names in `jaxmbs.study`: each is one line here, and nowhere else."""

from jaxmbs.study.distributions.base import Lognormal as Lognormal
from jaxmbs.study.distributions.base import Normal as Normal
from jaxmbs.study.distributions.base import TruncatedNormal as TruncatedNormal
from jaxmbs.study.distributions.base import Uniform as Uniform
from jaxmbs.study.distributions.tables import Discrete as Discrete
from jaxmbs.study.distributions.tables import Empirical as Empirical
from jaxmbs.study.distributions.tables import Mixture as Mixture
