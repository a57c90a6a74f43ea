"""For child processes of tests: with this folder on PYTHONPATH they get `torchvision_stub` as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torchvision_stub

torchvision_stub.install()
