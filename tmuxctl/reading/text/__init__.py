"""What a program wrote, as text: lines, escape sequences, marks, patterns."""
