"""Pictures and animations of mechanisms, and notebook displays."""

from jaxmbs.view.animate import animate as animate
from jaxmbs.view.draw import draw as draw
from jaxmbs.view.energy_flow import energy_flow as energy_flow
from jaxmbs.view.info import info_text as info_text
from jaxmbs.view.live import Viewer as Viewer
from jaxmbs.view.live import view as view
