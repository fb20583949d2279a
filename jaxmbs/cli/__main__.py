"""`python -m jaxmbs.cli`."""

from jaxmbs.cli import main

if __name__ == "__main__":  # not in the processes that a local cluster starts
    main()
