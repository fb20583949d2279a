"""Writing columns of numbers to MATLAB's MAT files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

LONGEST = 63  # characters of a name in MATLAB
# words of the languages of MATLAB and Octave, which are no names there
WORDS = """
    break case catch classdef continue do else elseif end end_try_catch end_unwind_protect endarguments endclassdef
    endenumeration endevents endfor endfunction endif endmethods endparfor endproperties endspmd endswitch endwhile for
    function global if otherwise parfor persistent return spmd switch try until unwind_protect unwind_protect_cleanup while
"""


def write_matlab(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write columns (m,) to a MAT file (version 5, which Octave and SciPy read as well): one variable (m, 1) for each, with
    a name that MATLAB allows, and the cells `names` and `heads` with these names and the ones given here.

    >>> write_matlab(Path("run.mat"), {"hinge.q[0]": np.array([0.0, 0.5]), "reach [mm]": np.array([1.0, 2.0])})
    >>> from scipy.io import loadmat
    >>> loadmat("run.mat")["hinge_q_0"].ravel().tolist()
    [0.0, 0.5]
    """
    from scipy.io import savemat

    named = dict(zip(variable_names(columns), columns, strict=True))
    found = {name: np.asarray(columns[head]).reshape(-1, 1) for name, head in named.items()}
    cells = {"names": np.array(list(named), object), "heads": np.array(list(named.values()), object)}
    with path.open("wb") as file:
        savemat(file, {**found, **cells}, do_compression=True, oned_as="column")


def variable_names(heads: Mapping[str, np.ndarray]) -> list[str]:
    """Names of variables for the heads of columns, without their units. Everything between letters and digits becomes one _.
    A name that would begin with a digit gets an x in front, and a word of MATLAB a _ behind. A name that is taken, and
    `names` and `heads`, get _2, _3 and so on.

    >>> variable_names({"hinge.q[0]": 0, "hinge_q_0": 1, "0 to 1 [%]": 2, "end [s]": 3})
    ['hinge_q_0', 'hinge_q_0_2', 'x0_to_1', 'end_']
    """
    found: list[str] = []
    for head in heads:
        plain = re.sub(r"\W+", "_", re.sub(r" \[[^\]]*\]$", "", head), flags=re.ASCII).strip("_") or "x"
        plain = f"{plain}_" if plain in WORDS.split() else plain
        own = name = (plain if plain[0].isalpha() else f"x{plain}")[:LONGEST]
        again = 1
        while name in found or name in ("names", "heads"):
            again += 1
            name = f"{own[: LONGEST - 1 - len(str(again))]}_{again}"
        found.append(name)
    return found
