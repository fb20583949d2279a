"""Names of variables in MAT files."""

import re

from jaxmbs.io.matlab import LONGEST, variable_names

# what `iskeyword` of MATLAB lists
KEYWORDS = """break case catch classdef continue else elseif end for function global if otherwise parfor persistent return
    spmd switch try while"""


def test_no_name_is_a_word_of_matlab():
    heads = dict.fromkeys(
        [*(f"{word} [s]" for word in KEYWORDS.split()), "end_", "_for_", "x" * 80, "x" * 90, "names", "3 / 4"]
    )
    names, words = variable_names(heads), KEYWORDS.split()
    assert not {*names} & {*words, "names", "heads"} and len({*names}) == len(heads)
    assert all(re.fullmatch(rf"[A-Za-z]\w{{0,{LONGEST - 1}}}", name, re.ASCII) for name in names)
    assert names[: len(words)] == [f"{word}_" for word in words]
