"""Sessions of other machines: how each machine is reached, and what its results and errors are called here."""
