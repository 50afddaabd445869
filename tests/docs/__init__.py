"""The pages as what they are to a reader: things to type, which have to be true."""
