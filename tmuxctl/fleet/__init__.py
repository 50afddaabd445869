"""Teams of programs: what a connector file says, the rules by which its agents talk, and the run that carries them out."""
