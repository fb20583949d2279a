"""Formulas written out: the algorithms of `jaxmbs.dynamics` on symbols, with few operations [T]."""

from jaxmbs.symbolic.statements import Operations as Operations
from jaxmbs.symbolic.write_out import write_out as write_out
from jaxmbs.symbolic.written import WrittenOut as WrittenOut
