"""`python -m eyespot.cli` does what `eyespot` does."""

from eyespot.cli import main

main()
