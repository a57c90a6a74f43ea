"""`python -m eyespot`, where the command `eyespot` is not on the path."""

from eyespot.cli import main

if __name__ == "__main__":
    main()
