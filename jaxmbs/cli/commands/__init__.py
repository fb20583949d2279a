"""The commands of `jaxmbs`, one file each."""
