"""Formulas with few operations, written out by running the algorithms of `jaxmbs.dynamics` on symbols [T]."""

from jaxmbs.symbolic.statements import Operations as Operations
from jaxmbs.symbolic.write_out import write_out as write_out
from jaxmbs.symbolic.written import WrittenOut as WrittenOut
