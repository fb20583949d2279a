"""FMUs (Functional Mock-up Units, FMI 3.0): models with their motion, for other simulators."""
