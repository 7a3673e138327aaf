"""`python -m driple`: the same as the command `driple`."""

from driple.cli.main import run

if __name__ == "__main__":
    run()
