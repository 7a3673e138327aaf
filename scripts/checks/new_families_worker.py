"""The test bed's worker process, which knows the networks of `new_families` too."""

from driple.measure.testbed.worker_process import main
from scripts.checks.new_families import register

if __name__ == "__main__":
    register()
    main()
