"""`python -m svmem`: the command line."""

import sys

from svmem.cli import main

if __name__ == "__main__":
    sys.exit(main())
