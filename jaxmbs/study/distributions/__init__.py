"""Distributions of single draws: those with a formula, values with weights, measured data, mixtures."""

from jaxmbs.study.distributions.base import Components as Components
from jaxmbs.study.distributions.base import Distribution as Distribution
from jaxmbs.study.distributions.base import Lognormal as Lognormal
from jaxmbs.study.distributions.base import Normal as Normal
from jaxmbs.study.distributions.base import TruncatedNormal as TruncatedNormal
from jaxmbs.study.distributions.base import Uniform as Uniform
from jaxmbs.study.distributions.base import named as named
from jaxmbs.study.distributions.tables import Discrete as Discrete
from jaxmbs.study.distributions.tables import Empirical as Empirical
from jaxmbs.study.distributions.tables import Mixture as Mixture
