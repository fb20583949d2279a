"""Instances of FMUs that tests drive by themselves."""

import zipfile


def initialized(file, kind, folder):
    """(instance, description) of an FMU that is unzipped in a folder, after its initialization; kind: "Slave" or "Model"."""
    import fmpy
    import fmpy.fmi3

    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    said = fmpy.read_model_description(str(file))
    identifier = (said.coSimulation if kind == "Slave" else said.modelExchange).modelIdentifier
    fmu = getattr(fmpy.fmi3, f"FMU3{kind}")(
        guid=said.guid, unzipDirectory=str(folder), modelIdentifier=identifier, instanceName="one"
    )
    fmu.instantiate()
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    return fmu, said
