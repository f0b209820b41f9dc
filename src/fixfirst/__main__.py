"""`python -m fixfirst` is `fixfirst`."""

import sys

from fixfirst.cli import main

sys.exit(main())
