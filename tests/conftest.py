"""What every test shares."""

import os

from hypothesis import settings

# No deadline: the first example of a test may pay for compiling the engine.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
