"""The live suite: real agent programs driven through their terminals against a local model whose log is the truth."""
