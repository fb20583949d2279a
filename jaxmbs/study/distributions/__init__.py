"""Distributions of single draws: those with a formula, values with weights, measured data, mixtures."""

from jaxmbs.study.distributions.base import Components as Components
from jaxmbs.study.distributions.base import Distribution as Distribution
from jaxmbs.study.distributions.base import named as named
from jaxmbs.study.distributions.public import *  # noqa: F403
