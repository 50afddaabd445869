"""Asks for a password with echo switched off, as getpass does, and tells how long it was."""

import sys
import termios

modes = termios.tcgetattr(0)
modes[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, modes)
print("password: ", end="", flush=True)
line = sys.stdin.readline()
modes[3] |= termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, modes)
print(f"\nit has {len(line) - 1} bytes", flush=True)
sys.stdin.readline()
