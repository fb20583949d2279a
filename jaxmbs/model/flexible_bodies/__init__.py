"""Flexible bodies: parts with a few modes, where they come from, and what they add to a mechanism."""

from jaxmbs.model.flexible_bodies.part import Part as Part
