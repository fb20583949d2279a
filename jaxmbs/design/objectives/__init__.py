"""Objectives, for which parameters are sought. Each kind is one file."""

from jaxmbs.design.objectives.public import *  # noqa: F403
