"""Equilibria of mechanisms, their vibration and their stability."""

from jaxmbs.stability.public import *  # noqa: F403
