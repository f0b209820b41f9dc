"""A terminal of any size for a command of ours."""

import os
import pty
import re
import struct
import subprocess
import sys
from fcntl import ioctl
from termios import TIOCSWINSZ

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def in_terminal(arguments, width=100, height=30, code=0, **environment):
    """What `fixfirst` writes to a terminal of this size."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fixfirst", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=inherited | {"TERM": "xterm-256color"} | environment,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait() == code, text.decode()
    return text.decode()
