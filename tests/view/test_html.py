"""What notebooks show."""

import xml.etree.ElementTree as ET

import numpy as np

import jaxmbs as mbs


def test_a_model_shows_its_tree_and_its_joints():
    mech = mbs.library.double_pendulum()
    mech.add_body("<hand>", 0.5, inertia=(1, 1, 1))
    mech.add_joint("wrist", mbs.Spherical(), "lower", "<hand>")
    mech.add_event("go", when=mbs.Time(1.0))
    model = mech.build()
    page = ET.fromstring(model._repr_html_())
    said = "".join(page.itertext())
    assert "3 bodies, 5 degrees of freedom (nq = 6), 1 event" in said and "└─ <hand>  (wrist: Spherical, 3)" in said
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert [row[:4] for row in rows[2:]] == [
        ["lower", "1", "elbow", "Revolute"],
        ["<hand>", "0.5", "wrist", "Spherical"],
    ]
    batch, _ = mbs.vary(model, {"lower.mass": np.ones(7)})
    assert "7 values" in batch._repr_html_()
