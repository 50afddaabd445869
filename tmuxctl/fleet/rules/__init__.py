"""Who is told what, and when: the rules of each topology, without any program."""
