"""`python -m fixfirst` is `fixfirst`."""

import sys

from fixfirst.cli.main import main

sys.exit(main())
