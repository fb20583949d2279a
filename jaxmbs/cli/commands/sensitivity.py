"""jaxmbs sensitivity."""

from __future__ import annotations

from jaxmbs.cli.common import Folder, Json, Quiet, Trust, compute, speaking


def sensitivity(folder: Folder, trust: Trust = False, as_json: Json = False, quiet: Quiet = False) -> None:
    """Show which inputs drive each output of a run: Sobol indices (design = "saltelli" in the file), Morris' effects
    (design = "morris"), rank correlations otherwise."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.statistics.sensitivity import sensitivity as computed
        from jaxmbs.study.statistics.sensitivity import table

        found = computed(folder, trust)
        voice.document(found)
        voice.show(table(found))
