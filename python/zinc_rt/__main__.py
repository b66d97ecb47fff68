"""`python -m zinc_rt` is the program zinc-rt."""

import signal
import sys

from ._core import cli


def main() -> int:
    # The native program handles Ctrl-C itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
    return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
