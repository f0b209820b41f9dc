"""The command `fixfirst`, and `python -m fixfirst`."""

import signal
import sys

# Until `main` answers Ctrl-C with a line, it ends the command as it would any program: without a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from fixfirst.cli import main as main

if __name__ == "__main__":
    sys.exit(main())
