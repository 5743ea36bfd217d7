"""What every test shares."""

import os
import signal

from hypothesis import settings

# No deadline: the first example of a test may pay for compiling the engine.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Started in the background by a script, this process ignores Ctrl-C, and so would those that tests
# start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
