"""The library: sessions as objects, for programs in Python. `tmuxctl` has its names."""
