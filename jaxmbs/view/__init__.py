"""Pictures of a mechanism."""

from jaxmbs.view.energy_flow import energy_flow as energy_flow
from jaxmbs.view.info import info_text as info_text
