"""Sessions of three machines are driven while random faults are made; each action's outcome is judged.

`make weekly SUITES=chaos` runs it.
"""
