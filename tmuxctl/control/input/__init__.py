"""What is typed into a session: texts, keys, secrets, answers to questions."""
