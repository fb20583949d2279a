"""What the flags of an MJCF file's options disable."""

from __future__ import annotations

from typing import Any, NamedTuple


class Off(NamedTuple):
    """The effects that flags of the file's option disable. passive: springs, dampers, fluids and gravity
    compensation."""

    gravity: bool
    passive: bool
    springs: bool
    dampers: bool
    friction: bool
    equalities: bool
    contacts: bool
    limits: bool
    actuators: bool

    @staticmethod
    def of(mujoco: Any, flags: int) -> Off:
        def has(*names: str) -> bool:  # flags that this version of MuJoCo does not have count as not set
            return any(flags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{n}", 0)) for n in names)

        springs, dampers = has("SPRING", "PASSIVE"), has("DAMPER", "PASSIVE")
        friction, equalities, contacts, limits = (
            has(n, "CONSTRAINT") for n in ("FRICTIONLOSS", "EQUALITY", "CONTACT", "LIMIT")
        )
        rest = friction, equalities, contacts, limits, has("ACTUATION")
        return Off(has("GRAVITY"), springs and dampers, springs, dampers, *rest)
