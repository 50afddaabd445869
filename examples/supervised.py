#!/usr/bin/env python3
"""A stand-in for an agent program, supervised by supervise.sh and supervise_mcp.py: it asks before it runs a command."""

import subprocess

while True:
    file = input("task> ").split()[-1]
    command = ["wc", "-l", file]
    if input(f"Run {' '.join(command)}? [y/N] ").lower() == "y":
        lines = subprocess.check_output(command, text=True).split()[0]
        print(f"{file} has {lines} lines.")
    else:
        print("I may not run it, so I cannot tell.")
