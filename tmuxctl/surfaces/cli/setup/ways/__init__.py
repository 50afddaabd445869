"""Ways to a machine, as its commands set them up: pairing through ssh, and tests of each."""
