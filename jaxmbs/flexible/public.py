"""The public names of `jaxmbs.flexible`."""

from jaxmbs.flexible.beams import beam as beam
from jaxmbs.flexible.nastran import from_nastran as from_nastran
from jaxmbs.flexible.reduction import reduced as reduced
from jaxmbs.model.flexible import FlexiblePart as FlexiblePart
