"""Ready-made mechanisms: small functions that return a `Mechanism`, which can be built as it is or changed first.

model = mbs.library.arm7().build()

gravity, where a function takes it, is the uniform acceleration (3,) [m/s²] in world axes.
"""

from jaxmbs.library.bicycle import bicycle as bicycle
from jaxmbs.library.chains import chain as chain
from jaxmbs.library.chains import double_pendulum as double_pendulum
from jaxmbs.library.crank_slider import crank_slider as crank_slider
from jaxmbs.library.curve_joint import curve_joint as curve_joint
from jaxmbs.library.curve_joint import helix_slide as helix_slide
from jaxmbs.library.deployable import scissor_mast as scissor_mast
from jaxmbs.library.deployable import synchronised_wing as synchronised_wing
from jaxmbs.library.elastic import beam as beam
from jaxmbs.library.elastic import cable as cable
from jaxmbs.library.elastic import plate as plate
from jaxmbs.library.loops import ANDREWS_START as ANDREWS_START
from jaxmbs.library.loops import andrews_squeezer as andrews_squeezer
from jaxmbs.library.loops import bricard as bricard
from jaxmbs.library.loops import four_bar as four_bar
from jaxmbs.library.loops import four_bar_windows as four_bar_windows
from jaxmbs.library.prosthetic_arm import bryant_joint as bryant_joint
from jaxmbs.library.prosthetic_arm import prosthetic_arm as prosthetic_arm
from jaxmbs.library.robots import arm7 as arm7
from jaxmbs.library.robots import humanoid30 as humanoid30
from jaxmbs.library.separation import stage_separation as stage_separation
from jaxmbs.library.solar_array import solar_array_linkage as solar_array_linkage
from jaxmbs.library.telegin_robots import planar_two_arm_robot as planar_two_arm_robot
from jaxmbs.library.telegin_robots import spatial_two_arm_robot as spatial_two_arm_robot
from jaxmbs.library.telegin_robots import three_link_arm as three_link_arm
from jaxmbs.library.triple_pendulum import triple_pendulum as triple_pendulum
