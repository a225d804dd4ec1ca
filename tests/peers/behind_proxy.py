"""Runs a client of the suite against the proxy instead of the suite's server: `MODE URL`."""

import subprocess
import sys

from places import HERE, PYTHON, proxied

mode, url = sys.argv[1:]
with proxied(mode, "--upstream", url) as ours:
    sys.exit(subprocess.run([PYTHON, str(HERE / "suite_client.py"), ours]).returncode)
