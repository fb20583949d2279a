"""`python -m jaxmbs.cli`."""

from jaxmbs.cli import main

main()
