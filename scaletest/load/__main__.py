"""``python -m scaletest.load``: the load driver process. Started by ``scaletest.load.client``."""

import locust  # isort: skip  # noqa: F401 - patches sockets and SSL, which must come before they are used

import os
import sys

from scaletest.load.driver import main

if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # Greenlets of a locustfile may not hold up the exit; nothing is buffered any more.
    os._exit(status)
