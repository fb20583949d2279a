"""What other software reads: functions as shared libraries, C source, programs of JAX and kernels for GPUs; motions as
ephemerides."""

from jaxmbs.exporting.ephemeris import save_ephemeris as save_ephemeris
from jaxmbs.exporting.export import export as export
